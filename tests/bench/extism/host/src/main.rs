//! Calls a tool through Extism and says how long it took: `hotcell-bench-extism PLUGIN.wasm`.
//!
//! Every line of standard input is a call: a way (`fresh`, `limited` or `reused`), a blank, the arguments. The answer is one
//! line: nanoseconds, a blank, the result. Times are taken here, so that the pipe is not part of them.

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

use extism::{CompiledPlugin, Manifest, Plugin, PluginBuilder, Wasm};

/// The limits that hotcell's tools have by default, as far as Extism knows such limits.
const FUEL: u64 = 200_000_000;
const WALL_CLOCK: Duration = Duration::from_secs(5);
const PAGES_OF_MEMORY: u32 = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("the plugin is missing: hotcell-bench-extism PLUGIN.wasm")?;
    let bytes = std::fs::read(path)?;
    let manifest = || Manifest::new([Wasm::data(bytes.clone())]);
    let plain = CompiledPlugin::new(PluginBuilder::new(manifest()))?;
    let limits = manifest().with_memory_max(PAGES_OF_MEMORY).with_timeout(WALL_CLOCK);
    let limited = CompiledPlugin::new(PluginBuilder::new(limits).with_fuel_limit(FUEL))?;
    let mut reused = Plugin::new_from_compiled(&plain)?;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (way, arguments) = line.split_once(' ').ok_or("a call is a way, a blank and the arguments")?;
        let begun = Instant::now();
        let answer = match way {
            "fresh" => call(&mut Plugin::new_from_compiled(&plain)?, arguments)?,
            "limited" => call(&mut Plugin::new_from_compiled(&limited)?, arguments)?,
            "reused" => call(&mut reused, arguments)?,
            other => return Err(format!("there is no way `{other}`").into()),
        };
        writeln!(output, "{} {answer}", begun.elapsed().as_nanos())?;
        output.flush()?;
    }
    Ok(())
}

fn call(plugin: &mut Plugin, arguments: &str) -> Result<String, Box<dyn Error>> {
    Ok(plugin.call::<&str, String>("call", arguments)?)
}
