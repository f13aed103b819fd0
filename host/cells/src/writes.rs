//! WASI's functions that write files or make something in a directory: they take room from the call's [`Disk`] first.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, Host as _, HostDescriptor as _, PathFlags};
use wasmtime_wasi::p2::{DynOutputStream, FsResult};

use crate::disk::{Counted, Place, Wanted};
use crate::files::TYPES;
use crate::guest::GuestState;

type Store<'a> = StoreContextMut<'a, GuestState>;
type Streamed = Result<Resource<DynOutputStream>, ErrorCode>;

/// Puts the functions of this module in the place of WASI's own.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;
    add_writing(&mut types)?;
    add_making(&mut types)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn add_writing(types: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    types.func_wrap_async(
        "[method]descriptor.write",
        |mut store: Store<'_>, (file, bytes, offset): (Resource<Descriptor>, Vec<u8>, u64)| {
            Box::new(async move {
                let guest = store.data_mut();
                let place = guest.place(&file);
                let wanted = Wanted::write(&place, Some(offset), bytes.len());
                if let Err(full) = guest.disk.take(&place, wanted).await {
                    return Ok((Err(full),));
                }
                let written = guest.filesystem().write(file, bytes, offset).await;
                Ok((guest.plain(written)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-size",
        |mut store: Store<'_>, (file, size): (Resource<Descriptor>, u64)| {
            Box::new(async move {
                let guest = store.data_mut();
                let place = guest.place(&file);
                let wanted = Wanted::size(&place, size);
                if let Err(full) = guest.disk.take(&place, wanted).await {
                    return Ok((Err(full),));
                }
                let set = guest.filesystem().set_size(file, size).await;
                Ok((guest.plain(set)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.write-via-stream",
        |mut store: Store<'_>, (file, offset): (Resource<Descriptor>, u64)| {
            Box::new(async move {
                let guest = store.data_mut();
                let place = guest.place(&file);
                let stream = guest.filesystem().write_via_stream(file, offset);
                Ok((guest.counted(stream, place, Some(offset)).await?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.append-via-stream",
        |mut store: Store<'_>, (file,): (Resource<Descriptor>,)| {
            Box::new(async move {
                let guest = store.data_mut();
                let place = guest.place(&file);
                let stream = guest.filesystem().append_via_stream(file);
                Ok((guest.counted(stream, place, None).await?,))
            })
        },
    )
}

fn add_making(types: &mut LinkerInstance<'_, GuestState>) -> wasmtime::Result<()> {
    types.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store: Store<'_>, (directory, path): (Resource<Descriptor>, String)| {
            Box::new(async move {
                let guest = store.data_mut();
                if let Err(full) = guest.take_room(&directory, Wanted::FILE).await {
                    return Ok((Err(full),));
                }
                let made = guest.filesystem().create_directory_at(directory, path).await;
                Ok((guest.plain(made)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store: Store<'_>, (directory, to, path): (Resource<Descriptor>, String, String)| {
            Box::new(async move {
                let guest = store.data_mut();
                if let Err(full) = guest.take_room(&directory, Wanted::FILE).await {
                    return Ok((Err(full),));
                }
                let made = guest.filesystem().symlink_at(directory, to, path).await;
                Ok((guest.plain(made)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.link-at",
        |mut store: Store<'_>,
         (from, flags, old, into, new): (
            Resource<Descriptor>,
            PathFlags,
            String,
            Resource<Descriptor>,
            String,
        )| {
            Box::new(async move {
                let guest = store.data_mut();
                if guest.is_elsewhere(&from, &into) {
                    return Ok((Err(ErrorCode::CrossDevice),));
                }
                if let Err(full) = guest.take_room(&into, Wanted::FILE).await {
                    return Ok((Err(full),));
                }
                let made = guest.filesystem().link_at(from, flags, old, into, new).await;
                Ok((guest.plain(made)?,))
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store: Store<'_>, (from, old, into, new): (Resource<Descriptor>, String, Resource<Descriptor>, String)| {
            Box::new(async move {
                let guest = store.data_mut();
                if guest.is_elsewhere(&from, &into) {
                    return Ok((Err(ErrorCode::CrossDevice),));
                }
                let moved = guest.filesystem().rename_at(from, old, into, new).await;
                Ok((guest.plain(moved)?,))
            })
        },
    )
}

impl GuestState {
    /// Takes room where a file or directory lies.
    pub(crate) async fn take_room(&mut self, at: &Resource<Descriptor>, wanted: Wanted) -> Result<(), ErrorCode> {
        let place = self.place(at);
        self.disk.take(&place, wanted).await
    }

    /// Whether nothing can be moved or linked from one directory to another, as between two disks: what comes into a directory with
    /// a limit of its own has to be counted, and a tree of files is not counted in a moment. Programs copy then.
    fn is_elsewhere(&self, from: &Resource<Descriptor>, into: &Resource<Descriptor>) -> bool {
        let limited = |at: &Resource<Descriptor>| self.limited.get(&at.rep());
        limited(into).is_some() && limited(from) != limited(into)
    }

    /// Where a file or directory lies; WASI's own function says what is wrong with one that is not there.
    fn place(&mut self, at: &Resource<Descriptor>) -> Place {
        let directory = self.limited.get(&at.rep()).copied();
        let file = match self.filesystem().table.get(at) {
            Ok(Descriptor::File(file)) => Some(Arc::clone(&file.file)),
            Ok(Descriptor::Dir(_)) | Err(_) => None,
        };
        Place { directory, file }
    }

    /// A stream that takes room for what is written.
    async fn counted(
        &mut self,
        stream: FsResult<Resource<DynOutputStream>>,
        place: Place,
        from: Option<u64>,
    ) -> wasmtime::Result<Streamed> {
        let stream = match self.plain(stream)? {
            Ok(stream) => stream,
            Err(error) => return Ok(Err(error)),
        };
        let stream = self.filesystem().table.delete(stream)?;
        let disk = self.disk.clone();
        // Counts the directory, if it has to be: the stream itself cannot wait for that each time.
        if let Err(full) = disk.take(&place, Wanted::default()).await {
            return Ok(Err(full));
        }
        let counted: DynOutputStream = Box::new(Counted { stream, from, place, disk });
        Ok(Ok(self.filesystem().table.push(counted)?))
    }

    /// The error code of a failure, unless it is one that ends the call.
    pub(crate) fn plain<T>(&mut self, result: FsResult<T>) -> wasmtime::Result<Result<T, ErrorCode>> {
        match result {
            Ok(value) => Ok(Ok(value)),
            Err(error) => Ok(Err(self.filesystem().convert_error_code(error)?)),
        }
    }
}
