//! Schedules: times at which runs of any agent are begun, and at which agents of meshes wake up.

pub(crate) mod definition;
pub(crate) mod go_on;
pub(crate) mod runs;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod times;
