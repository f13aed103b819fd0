//! The memory of all calls together. A call takes its limit of memory from it before it starts and gives it back when it ends,
//! so that many calls at once cannot have more than the machine has. Who comes first is served first, however much it needs.

use std::sync::Arc;

use hotcell_budget::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit in which memory is handed out.
const UNIT: u64 = 1 << 20;
/// What there is where the machine does not say how much memory it has.
const UNKNOWN: u64 = 4 << 30;
/// The least that there is: enough for one interpreter and what it calls.
const LEAST: u64 = 1 << 30;
/// Bytes of the small files in which a system says how much memory there is.
const MAX_FACTS: u64 = 64 << 10;

/// The memory that calls may have.
#[derive(Debug)]
pub(crate) struct Room {
    units: Arc<Semaphore>,
    total: u32,
}

/// What one call has of it, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _units: OwnedSemaphorePermit,
}

impl Room {
    pub(crate) fn new(memory: Bytes) -> Self {
        let total = units(memory).max(1);
        Self { units: Arc::new(Semaphore::new(total as usize)), total }
    }

    /// Waits for memory. Who needs more than there is in all has it alone.
    pub(crate) async fn take(&self, memory: Bytes) -> Option<Place> {
        let units = self.units.clone().acquire_many_owned(units(memory).min(self.total)).await.ok()?;
        Some(Place { _units: units })
    }

    /// Memory, if there is enough at this moment.
    pub(crate) fn try_take(&self, memory: Bytes) -> Option<Place> {
        let units = self.units.clone().try_acquire_many_owned(units(memory).min(self.total)).ok()?;
        Some(Place { _units: units })
    }
}

fn units(memory: Bytes) -> u32 {
    u32::try_from(memory.0.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Half of the memory that this process may have.
pub(crate) fn of_this_machine() -> Bytes {
    let most = [machine(), group()].into_iter().flatten().min().unwrap_or(UNKNOWN);
    Bytes((most / 2).max(LEAST))
}

/// What the machine has.
fn machine() -> Option<u64> {
    let facts = hotcell_files::read_text("/proc/meminfo", MAX_FACTS).ok()?;
    let line = facts.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// What the group of processes may have that this one belongs to, as containers limit it.
fn group() -> Option<u64> {
    let own = hotcell_files::read_text("/proc/self/cgroup", MAX_FACTS).ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let limit = |path: &str| {
        let file = format!("/sys/fs/cgroup{}/memory.max", path.trim_end_matches('/'));
        hotcell_files::read_text(file, MAX_FACTS).ok()?.trim().parse::<u64>().ok()
    };
    [limit(path), limit("")].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use hotcell_budget::Bytes;

    use super::{LEAST, Room, of_this_machine};

    const MIB: u64 = 1 << 20;

    #[tokio::test]
    async fn memory_is_handed_out_in_the_order_of_asking() {
        let room = Room::new(Bytes(100 * MIB));
        let first = room.take(Bytes(60 * MIB)).await;
        let mut large = Box::pin(room.take(Bytes(80 * MIB)));
        let mut small = Box::pin(room.take(Bytes(10 * MIB)));
        assert!(futures::poll!(&mut large).is_pending());
        // There is enough for it, but somebody waits already.
        assert!(futures::poll!(&mut small).is_pending());
        assert!(room.try_take(Bytes(10 * MIB)).is_none());
        drop(first);
        let large = large.await;
        let small = small.await;
        assert!(large.is_some() && small.is_some());
        assert!(room.try_take(Bytes(11 * MIB)).is_none());
        drop(large);
        assert!(room.try_take(Bytes(11 * MIB)).is_some());
    }

    #[tokio::test]
    async fn who_needs_more_than_there_is_has_it_alone() {
        let room = Room::new(Bytes(100 * MIB));
        let all = room.take(Bytes(u64::MAX)).await;
        assert!(all.is_some() && room.try_take(Bytes(1)).is_none());
        drop(all);
        assert!(room.try_take(Bytes(1)).is_some());
    }

    #[test]
    fn a_machine_has_some_memory() {
        assert!(of_this_machine() >= Bytes(LEAST));
    }
}
