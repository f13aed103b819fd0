//! Noticing that files change. The system tells of it where it can; what it told is only a reason to look, and looking decides. Where
//! the system cannot tell, whoever watches looks from time to time.

mod folders;
mod follow;
mod outcome;
#[cfg(not(target_os = "linux"))]
#[path = "untold.rs"]
mod watcher;
#[cfg(target_os = "linux")]
mod watcher;
mod written;

pub use folders::{Folders, Noticed};
pub use follow::{Look, Looked, UNTOLD_NOTICE, When, follow};
pub use written::Written;
