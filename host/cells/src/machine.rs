//! How much memory the machine has, and this process of it.

use hotcell_budget::Bytes;

/// What there is where the machine does not say how much memory it has.
const UNKNOWN: u64 = 4 << 30;
/// The least that there is: enough for one interpreter and what it calls.
const LEAST: u64 = 1 << 30;
/// Bytes of the small files in which a system says how much memory there is.
const MAX_FACTS: u64 = 64 << 10;

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

    use super::{LEAST, of_this_machine};

    #[test]
    fn a_machine_has_some_memory() {
        assert!(of_this_machine() >= Bytes(LEAST));
    }
}
