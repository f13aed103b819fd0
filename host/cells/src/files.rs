//! The directories of a guest: those that were granted, and below them an empty root that grants nothing.
//!
//! Without the root, a guest that opens a path outside its grants would be turned away by its own library, and nobody
//! would learn what it wanted. With it the attempt reaches the host, fails as before, and becomes a denial that says
//! how to grant the directory.

use std::sync::OnceLock;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, Host as _, HostDescriptor as _, OpenFlags, PathFlags,
};
use wasmtime_wasi::{FsPerms, OpenMode};

use crate::grants::Access;
use crate::guest::GuestState;
use crate::policy::{Decision, Request, decide};

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
    linker.instance("wasi:filesystem/types@0.2.12")?.func_wrap_async(
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
                let mut files = guest.filesystem();
                if !open_flags.contains(OpenFlags::DIRECTORY) {
                    let there = files.stat_at(Resource::new_borrow(directory.rep()), path_flags, path.clone()).await;
                    if there.is_ok_and(|there| is_special(there.type_)) {
                        return Ok((Opened::Err(ErrorCode::NotPermitted),));
                    }
                }
                let opened = files.open_at(directory, path_flags, path, open_flags, flags).await;
                let opened: Opened = match opened {
                    Ok(opened) => Ok(opened),
                    Err(error) => Err(files.convert_error_code(error)?),
                };
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
        if let Some(root) = empty_root() {
            let root = self.filesystem().table.push(Descriptor::Dir(root))?;
            self.root = Some(root.rep());
            directories.push((root, ROOT.to_owned()));
        }
        Ok(directories)
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
        let is_script = self.program().is_some_and(|program| program.trim_start_matches('/') == path);
        is_script || path.starts_with('<') && path.ends_with('>') || PYTHON_LIBRARIES.into_iter().any(in_library)
    }
}

/// A directory that is empty and stays so, because it is deleted as soon as it is open. Where that cannot be had,
/// attempts outside the grants fail without being noticed.
fn empty_root() -> Option<Dir> {
    static ROOT: OnceLock<Option<Dir>> = OnceLock::new();
    let open = || {
        let directory = tempfile::Builder::new().prefix("hotcell-root-").tempdir().ok()?;
        let file = std::fs::File::open(directory.path()).ok()?;
        Some(Dir::new(file, FsPerms::ReadOnly, OpenMode::READ, true))
    };
    ROOT.get_or_init(open).clone()
}
