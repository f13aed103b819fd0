//! The memory limit of one call: a sum over every linear memory and table, whichever instance they belong to, and
//! over what the host keeps for the guest.

use wasmtime::ResourceLimiter;

/// Bytes one table entry takes on the host.
const TABLE_ENTRY: usize = size_of::<usize>();

/// Counts memories and tables against one limit. A refused request is reported to the guest as a failed growth,
/// which well-behaved guests turn into an error of their own.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: usize,
    used: usize,
    peak: usize,
    latest: usize,
    refused: Option<usize>,
}

impl MemoryLimiter {
    /// A limiter for `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: 0, peak: 0, latest: 0, refused: None }
    }

    /// The largest sum that existed at one time, in bytes.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// The sum that was asked for when the limit was last hit.
    pub(crate) fn refused(&self) -> Option<usize> {
        self.refused
    }

    /// Counts bytes that the host keeps for the guest, until they are given back or the call ends; says whether there was room.
    pub(crate) fn keep(&mut self, bytes: usize) -> bool {
        self.grow(0, bytes)
    }

    /// Gives back what was counted by [`MemoryLimiter::keep`].
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Bytes that there is room for.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let wanted = self.used.saturating_add(desired.saturating_sub(current));
        if wanted > self.limit {
            self.refused = Some(wanted);
            return false;
        }
        self.latest = wanted - self.used;
        self.used = wanted;
        self.peak = self.peak.max(wanted);
        true
    }

    /// Takes back what was granted last, because the engine could not do it after all.
    fn take_back(&mut self) {
        self.used -= self.latest;
        self.latest = 0;
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grow(current.saturating_mul(TABLE_ENTRY), desired.saturating_mul(TABLE_ENTRY)))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::ResourceLimiter as _;

    use super::MemoryLimiter;

    #[test]
    fn memories_and_tables_share_one_limit() {
        let mut limiter = MemoryLimiter::new(1_000);
        assert!(limiter.memory_growing(0, 400, None).is_ok_and(|granted| granted));
        assert!(limiter.memory_growing(0, 400, None).is_ok_and(|granted| granted));
        assert!(limiter.table_growing(0, 26, None).is_ok_and(|granted| !granted));
        assert_eq!((limiter.peak(), limiter.refused()), (800, Some(1_008)));
        assert!(limiter.table_growing(0, 25, None).is_ok_and(|granted| granted));
        assert!(limiter.memory_growing(400, 401, None).is_ok_and(|granted| !granted));
    }
}
