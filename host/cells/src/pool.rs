//! The one wasmtime engine of the process and where its instances live: in a pool whose address space is reserved
//! ahead, so that a fresh instance costs microseconds, or on demand where that is not to be had.

use wasmtime::{Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::engine::code_configuration;

/// Core instances of one component. Componentised Python is linked from some forty shared libraries.
const CORE_INSTANCES_PER_COMPONENT: u32 = 128;
/// Linear memories of one component.
const MEMORIES_PER_COMPONENT: u32 = 4;
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
    let mut slots = calls.max(1);
    while slots >= 4 || slots == calls.max(1) {
        let mut config = code_configuration();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(slots, scan)));
        if let Ok(engine) = Engine::new(&config) {
            if slots < calls {
                warnings.push(format!(
                    "address space for {calls} cells at once is not to be had: at most {slots} run at once"
                ));
            }
            return Ok(HostEngine { engine, allocation: Allocation::Pool(slots), warnings });
        }
        slots /= 2;
    }
    warnings.push(
        "address space for a pool of cells is not to be had: cells are mapped on demand and start slower".to_owned(),
    );
    let engine = Engine::new(&code_configuration())?;
    Ok(HostEngine { engine, allocation: Allocation::OnDemand, warnings })
}

/// A pool in which that many calls always find room, each as large as a component may be.
fn pool(calls: u32, scan: bool) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES_PER_COMPONENT))
        .total_memories(calls.saturating_mul(MEMORIES_PER_COMPONENT))
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
