//! The one wasmtime engine of the process and where its instances live: in a pool whose address space is reserved
//! ahead, so that a fresh instance costs microseconds, or on demand where that is not to be had.

use std::num::NonZero;

use wasmtime::{Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::engine::code_configuration;

/// Core instances of one component. Componentised Python is linked from some forty shared libraries.
const CORE_INSTANCES_PER_COMPONENT: u32 = 128;
/// Linear memories of one component.
const MEMORIES_PER_COMPONENT: u32 = 4;
/// Memories for each core, so that so many different plugins find theirs laid out as they left it. The engine has a list of
/// free memories for each core; laying out another plugin in a memory maps and unmaps pages, for which all cores wait.
/// A small plugin leaves some 10 to 40 KB in each of its memories, none more than what stays mapped between calls.
const WARM_MEMORIES_PER_CORE: u32 = 1_024;
/// How many times the memories that calls need there are at most: each takes 4 GiB of address space.
const WARM_MEMORIES_FACTOR: u32 = 4;
/// Tables of one component.
const TABLES_PER_COMPONENT: u32 = 64;
/// Entries of one table, of eight bytes each.
const TABLE_ELEMENTS: usize = 131_072;
/// Metadata of one component instance with all its core instances.
const COMPONENT_INSTANCE_SIZE: usize = 8 << 20;
/// Bytes of a slot's memory that stay mapped between two calls; they are reset to the guest's image.
const MEMORY_KEEP_RESIDENT: usize = 512 << 10;
/// The same for a slot's table.
const TABLE_KEEP_RESIDENT: usize = 64 << 10;

/// How many calls of how large guests are prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// Slots reserved ahead for this many calls at once.
    Pool(u32),
    /// Memory mapped for each call, where address space is too scarce for a pool.
    OnDemand,
}

/// An engine and how it places instances.
pub(crate) struct HostEngine {
    pub(crate) engine: Engine,
    pub(crate) allocation: Allocation,
    /// What had to be left out on this machine, one sentence each, for the operator.
    pub(crate) warnings: Vec<String>,
}

/// The engine for this machine: a pool for `calls` calls at once, less where that much address space is not to be
/// had, and at last memory on demand.
pub(crate) fn host_engine(calls: u32) -> Result<HostEngine, wasmtime::Error> {
    let mut warnings = Vec::new();
    let scan = PoolingAllocationConfig::is_pagemap_scan_available();
    if !scan {
        warnings.push(
            "this kernel has no `PAGEMAP_SCAN` (Linux 6.7 or newer): fresh cells cost some microseconds more"
                .to_owned(),
        );
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut slots = calls.max(1);
    while slots >= 4 || slots == calls.max(1) {
        // Warm memories only save time: where there is no room for them, nothing is missing that had to be said.
        let engine = [warm_memories(slots, cores), needed_memories(slots)].into_iter().find_map(|memories| {
            let mut config = code_configuration();
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(slots, memories, scan)));
            Engine::new(&config).ok()
        });
        if let Some(engine) = engine {
            if slots < calls {
                warnings
                    .push(format!("not enough address space for {calls} cells at once: at most {slots} run at a time"));
            }
            return Ok(HostEngine { engine, allocation: Allocation::Pool(slots), warnings });
        }
        slots /= 2;
    }
    warnings.push(
        "not enough address space for a pool of cells: cells are mapped on demand and start more slowly".to_owned(),
    );
    let engine = Engine::new(&code_configuration())?;
    Ok(HostEngine { engine, allocation: Allocation::OnDemand, warnings })
}

/// Memories without which so many calls would not always find room.
fn needed_memories(calls: u32) -> u32 {
    calls.saturating_mul(MEMORIES_PER_COMPONENT)
}

/// Memories with which many different plugins take turns on so many cores, each finding its own as it left it.
fn warm_memories(calls: u32, cores: usize) -> u32 {
    let needed = needed_memories(calls);
    let wanted = WARM_MEMORIES_PER_CORE.saturating_mul(u32::try_from(cores).unwrap_or(u32::MAX));
    wanted.clamp(needed, needed.saturating_mul(WARM_MEMORIES_FACTOR))
}

/// A pool in which that many calls always find room, each as large as a component may be.
fn pool(calls: u32, memories: u32, scan: bool) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES_PER_COMPONENT))
        .total_memories(memories)
        .max_unused_warm_slots(memories)
        .total_tables(calls.saturating_mul(TABLES_PER_COMPONENT))
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT)
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_memories_per_module(MEMORIES_PER_COMPONENT)
        .max_tables_per_module(8)
        .max_component_instance_size(COMPONENT_INSTANCE_SIZE)
        .max_core_instance_size(COMPONENT_INSTANCE_SIZE)
        .table_elements(TABLE_ELEMENTS)
        .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT)
        .table_keep_resident(TABLE_KEEP_RESIDENT)
        .pagemap_scan(if scan { Enabled::Yes } else { Enabled::No });
    pool
}

#[cfg(test)]
mod tests {
    use super::{needed_memories, warm_memories};

    #[test]
    fn warm_memories_grow_with_the_cores_within_what_calls_make_of_them() {
        let needed = needed_memories(128);
        assert_eq!(warm_memories(128, 1), 2 * needed);
        assert_eq!(warm_memories(128, 2), 4 * needed);
        assert_eq!(warm_memories(128, 64), 4 * needed);
        assert_eq!(warm_memories(4, 64), 4 * needed_memories(4));
        assert_eq!(warm_memories(8_192, 1), needed_memories(8_192));
    }
}
