//! Which WebAssembly is accepted and how it becomes machine code.
//!
//! Everything that influences machine code is set in [`code_configuration`], which the build script of the bundled
//! interpreters shares through [`precompile`]. Where instances live is another module's matter, because it may
//! differ between machines.

use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use wasmparser::WasmFeatures;
use wasmtime::{Config, Engine, ModuleVersionStrategy, WasmBacktraceDetails};

/// Stack of the guest itself. Interpreters recurse with their scripts, so it is twice wasmtime's default.
const MAX_WASM_STACK: usize = 1 << 20;
/// Stack of the fibre a call runs on: the guest's part and what host calls need.
const ASYNC_STACK: usize = 2 << 20;
/// WebAssembly beyond what plugins need. Most advisories of the engine lie in these parts.
const SWITCHED_OFF: WasmFeatures = WasmFeatures::GC
    .union(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::LEGACY_EXCEPTIONS)
    .union(WasmFeatures::THREADS)
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::STACK_SWITCHING)
    .union(WasmFeatures::CUSTOM_PAGE_SIZES)
    .union(WasmFeatures::WIDE_ARITHMETIC)
    .union(WasmFeatures::CM_ASYNC)
    .union(WasmFeatures::CM_ASYNC_STACKFUL)
    .union(WasmFeatures::CM_MORE_ASYNC_BUILTINS)
    .union(WasmFeatures::CM_THREADING)
    .union(WasmFeatures::CM_ERROR_CONTEXT)
    .union(WasmFeatures::CM_GC)
    .union(WasmFeatures::CM_MAP)
    .union(WasmFeatures::CM64)
    .union(WasmFeatures::CM_FIXED_LENGTH_LISTS)
    .union(WasmFeatures::CM_IMPLEMENTS);

/// Everything that machine code depends on, apart from the processor it is made for.
pub(crate) fn code_configuration() -> Config {
    let mut config = Config::new();
    config
        .wasm_features(SWITCHED_OFF, false)
        .consume_fuel(true)
        .epoch_interruption(false)
        .concurrency_support(false)
        .max_wasm_stack(MAX_WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .native_unwind_info(false)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .memory_init_cow(true);
    config
}

/// The engine and its version: fuel counts what its compiler makes of a component.
pub const ENGINE: &str = "wasmtime 48.0.8";

/// What an artefact made by this engine is only good for: the engine's version, settings and processor.
pub(crate) fn compatibility(engine: &Engine) -> String {
    struct Digester(Sha256);
    impl Hasher for Digester {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        fn finish(&self) -> u64 {
            let digest = self.0.clone().finalize();
            digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
        }
    }

    let mut hasher = Digester(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Compiles a component ahead of time for this architecture, with the settings every hotcell binary runs with.
///
/// The artefact needs no more than the architecture's common base (x86-64-v2, plain aarch64), so it can be carried
/// inside a binary that is copied to another machine. Hand it to [`Cells::load_carried`](crate::Cells::load_carried).
///
/// # Errors
/// When `wasm` is not a component, is not valid, or needs WebAssembly that is switched off.
pub fn precompile(wasm: &[u8]) -> Result<Vec<u8>, PrecompileError> {
    let mut config = code_configuration();
    config.module_version(ModuleVersionStrategy::WasmtimeVersion).map_err(PrecompileError::engine)?;
    config.target(&portable_target()).map_err(PrecompileError::engine)?;
    if cfg!(target_arch = "x86_64") {
        for flag in ["has_cmpxchg16b", "has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"] {
            // SAFETY: the flags only choose instructions; loading compares them with the processor and refuses the
            // artefact where one is missing.
            unsafe { config.cranelift_flag_enable(flag) };
        }
    }
    // Only addresses in backtraces of a guest's own code need it, and it is a tenth of an artefact.
    config.generate_address_map(false);
    let engine = Engine::new(&config).map_err(PrecompileError::engine)?;
    engine.precompile_component(wasm).map_err(|error| PrecompileError::Component(format!("{error:#}")))
}

/// This architecture and system without the features of this very processor.
fn portable_target() -> String {
    let system = match std::env::consts::OS {
        "macos" => "apple-darwin",
        "windows" => "pc-windows-msvc",
        _ => "unknown-linux-gnu",
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// Why a component could not be compiled ahead of time.
#[derive(Debug, thiserror::Error)]
pub enum PrecompileError {
    /// The engine itself could not be set up for this machine.
    #[error("cannot set up the compiler: {0}")]
    Engine(String),
    /// The component is not one, not valid or not supported.
    #[error("cannot compile the component: {0}")]
    Component(String),
}

impl PrecompileError {
    fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::ENGINE;

    #[test]
    fn the_engine_is_the_one_that_is_built_in() {
        let lock = include_str!("../../../Cargo.lock");
        let version = ENGINE.trim_start_matches("wasmtime ");
        assert!(lock.contains(&format!("name = \"wasmtime\"\nversion = \"{version}\"\n")), "{ENGINE}");
    }
}
