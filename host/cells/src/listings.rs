//! Reading a directory for a guest. WASI reads all entries at once and keeps them until the guest has taken them or closes the handle, so they
//! count as memory of the guest for so long: a directory may have very many, and a guest opens it a thousand times.

use std::fs::File;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::ReaddirIterator;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, HostDescriptor as _};

use crate::files::TYPES;
use crate::guest::GuestState;

/// Bytes that an entry takes beside its name.
#[cfg(unix)]
const ENTRY: usize = 64;

type Listed = Result<Resource<ReaddirIterator>, ErrorCode>;

/// Puts the function of this module in the place of WASI's own.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap_async(
        "[method]descriptor.read-directory",
        |mut store: StoreContextMut<'_, GuestState>, (directory,): (Resource<Descriptor>,)| {
            Box::new(async move {
                let guest = store.data_mut();
                guest.forget_listings();
                let bytes = guest.size_of_entries(&directory).await;
                if !guest.limiter.keep(bytes) {
                    return Ok((Listed::Err(ErrorCode::InsufficientMemory),));
                }
                let listed = guest.filesystem().read_directory(directory).await;
                let listed: Listed = guest.plain(listed)?;
                match &listed {
                    Ok(entries) => {
                        guest.listings.insert(entries.rep(), bytes);
                    }
                    Err(_) => guest.limiter.give_back(bytes),
                }
                Ok((listed,))
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

impl GuestState {
    /// Gives back what was kept of directories that the guest has closed since.
    fn forget_listings(&mut self) {
        let mut listings = std::mem::take(&mut self.listings);
        let mut free = 0;
        let table = self.filesystem().table;
        listings.retain(|number, bytes| {
            let is_open = table.get(&Resource::<ReaddirIterator>::new_borrow(*number)).is_ok();
            if !is_open {
                free += *bytes;
            }
            is_open
        });
        self.listings = listings;
        self.limiter.give_back(free);
    }

    /// Bytes that the entries of a directory take, counted until they are more than the guest has left.
    async fn size_of_entries(&mut self, directory: &Resource<Descriptor>) -> usize {
        let directory = match self.filesystem().table.get(directory) {
            Ok(Descriptor::Dir(directory)) => directory.dir.clone(),
            // WASI's own function says what is wrong with it.
            Ok(Descriptor::File(_)) | Err(_) => return 0,
        };
        let most = self.limiter.left();
        tokio::task::spawn_blocking(move || size(&directory, most)).await.unwrap_or(usize::MAX)
    }
}

#[cfg(unix)]
fn size(directory: &File, most: usize) -> usize {
    use rustix::fs::{Dir, Mode, OFlags, openat};

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // One that cannot be read has no entries that would be kept.
    let Ok(entries) = openat(directory, ".", flags, Mode::empty()).and_then(Dir::new) else { return 0 };
    let mut size = 0;
    for entry in entries.flatten() {
        size += entry.file_name().to_bytes().len() + ENTRY;
        if size > most {
            break;
        }
    }
    size
}

#[cfg(not(unix))]
fn size(_: &File, _: usize) -> usize {
    0
}
