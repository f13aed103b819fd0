//! The directories of a guest: those that were granted, and below them an empty root that grants nothing.
//!
//! Without the root, a guest that opens a path outside its grants would be turned away by its own library, and nobody
//! would learn what it wanted. With it the attempt reaches the host, fails as before, and becomes a denial that says
//! how to grant the directory.

use std::fs::File;
use std::sync::{Arc, OnceLock};

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor as _, OpenFlags, PathFlags,
};
use wasmtime_wasi::{FsPerms, OpenMode};

use crate::disk::Wanted;
use crate::grants::Access;
use crate::guest::GuestState;
use crate::open_files::one_too_many;
use crate::policy::{Decision, Request, decide};

/// The interface that the functions belong to.
pub(crate) const TYPES: &str = "wasi:filesystem/types@0.2.12";
/// The guest's path of the empty root.
const ROOT: &str = "/";
/// Where the Python cell looks for the sources of its own library and of itself, which it carries compiled only.
const PYTHON_LIBRARIES: [&str; 2] = ["/python", "/0"];
/// Bytes of a guest's path that are shown.
const MAX_SHOWN_PATH: usize = 200;

type Opened = Result<Resource<Descriptor>, ErrorCode>;

/// Puts the functions of this module in the place of WASI's own.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker
        .instance("wasi:filesystem/preopens@0.2.12")?
        .func_wrap("get-directories", |mut store: StoreContextMut<'_, GuestState>, (): ()| {
            Ok((store.data_mut().directories()?,))
        })?;
    linker.instance(TYPES)?.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store: StoreContextMut<'_, GuestState>,
         (directory, path_flags, path, open_flags, flags): (
            Resource<Descriptor>,
            PathFlags,
            String,
            OpenFlags,
            DescriptorFlags,
        )| {
            Box::new(async move {
                let guest = store.data_mut();
                let in_root = guest.root == Some(directory.rep());
                let shown = in_root.then(|| path.clone());
                let borrowed = || Resource::<Descriptor>::new_borrow(directory.rep());
                let limited = guest.limited.get(&directory.rep()).copied();
                if !open_flags.contains(OpenFlags::DIRECTORY) {
                    let there = guest.filesystem().stat_at(borrowed(), path_flags, path.clone()).await;
                    let makes_it = there.is_err() && open_flags.contains(OpenFlags::CREATE);
                    if there.is_ok_and(|there| is_special(there.type_)) {
                        return Ok((Opened::Err(ErrorCode::NotPermitted),));
                    }
                    if makes_it && let Err(full) = guest.take_room(&borrowed(), Wanted::FILE).await {
                        return Ok((Opened::Err(full),));
                    }
                }
                let opened = guest.filesystem().open_at(directory, path_flags, path, open_flags, flags).await;
                let opened: Opened = guest.plain(opened)?;
                if let Ok(opened) = &opened {
                    if let Some(most) = guest.file(opened).and_then(|file| one_too_many(&file)) {
                        guest.filesystem().table.delete(Resource::<Descriptor>::new_own(opened.rep()))?;
                        guest.open_files_exhausted = Some(most);
                        return Ok((Opened::Err(ErrorCode::InsufficientMemory),));
                    }
                    guest.limit_like(limited, opened);
                }
                if let (Some(path), Err(_)) = (shown, &opened) {
                    guest.deny_directory(&path, open_flags, flags);
                }
                Ok((opened,))
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Whether opening a thing of this kind can block a thread of the host, or do something other than read and write a
/// file: a pipe, a socket, a device.
///
/// Guests cannot make such things. Somebody else who puts one in the place of a file between the look and the opening
/// has the same rights in the directory as the operator who granted it.
fn is_special(kind: DescriptorType) -> bool {
    !matches!(kind, DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink)
}

impl GuestState {
    /// The granted directories and the empty root.
    fn directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut directories = self.filesystem().get_directories()?;
        for (directory, guest) in &directories {
            let limited = self.disk.directory(guest);
            self.limit_like(limited, directory);
        }
        if let Some(root) = empty_root() {
            let root = self.filesystem().table.push(Descriptor::Dir(root))?;
            self.root = Some(root.rep());
            directories.push((root, ROOT.to_owned()));
        }
        Ok(directories)
    }

    /// The open file or directory of a handle.
    fn file(&mut self, opened: &Resource<Descriptor>) -> Option<Arc<File>> {
        match self.filesystem().table.get(opened).ok()? {
            Descriptor::File(file) => Some(file.file.clone()),
            Descriptor::Dir(directory) => Some(directory.dir.clone()),
        }
    }

    /// Notes that what was opened lies in the granted directory with this number, which has a limit of its own, or in none.
    fn limit_like(&mut self, limited: Option<usize>, opened: &Resource<Descriptor>) {
        // The number of a handle that was closed is given again.
        match limited {
            Some(number) => self.limited.insert(opened.rep(), number),
            None => self.limited.remove(&opened.rep()),
        };
    }

    /// Records that the guest wanted `path`, which lies in no directory it was granted.
    fn deny_directory(&mut self, path: &str, open_flags: OpenFlags, flags: DescriptorFlags) {
        let path = crate::text::one_line(path.trim_matches('/'), MAX_SHOWN_PATH);
        let directory = match path.rsplit_once('/') {
            _ if open_flags.contains(OpenFlags::DIRECTORY) => format!("/{path}"),
            Some((directory, _)) => format!("/{directory}"),
            None => ROOT.to_owned(),
        };
        if self.is_quoted(&path, &directory) {
            return;
        }
        let writes =
            open_flags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) || flags.contains(DescriptorFlags::WRITE);
        let access = if writes { Access::ReadWrite } else { Access::Read };
        if let Decision::Deny(capability) = decide(&self.grants, &Request::Directory { guest: &directory, access }) {
            self.denials.add(capability);
        }
    }

    /// Whether an interpreter looks at `path` in `directory` only to quote a line in the report of an error: a part of its
    /// library, the script itself, which is in no file, or what never was in one (`<string>`).
    fn is_quoted(&self, path: &str, directory: &str) -> bool {
        let in_library = |library: &str| {
            directory.strip_prefix(library).is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let is_script = self.program().trim_start_matches('/') == path;
        is_script || path.starts_with('<') && path.ends_with('>') || PYTHON_LIBRARIES.into_iter().any(in_library)
    }
}

/// A directory that is empty and stays so, because it is deleted as soon as it is open. Where that cannot be had,
/// attempts outside the grants fail without being noticed.
fn empty_root() -> Option<Dir> {
    static ROOT: OnceLock<Option<Dir>> = OnceLock::new();
    let open = || {
        let directory = tempfile::Builder::new().prefix("hotcell-root-").tempdir().ok()?;
        let file = File::open(directory.path()).ok()?;
        Some(Dir::new(file, FsPerms::ReadOnly, OpenMode::READ, true))
    };
    ROOT.get_or_init(open).clone()
}
