//! C: clang makes a module, `wit-component` a component of it, and `description.json` says what the code offers.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::ComponentEncoder;
use wit_parser::{Resolve, WorldId};

use super::{BuildError, Job, Made, component_path, create_folder, parse_offered, read_file, world, write_file};
use crate::component;
use crate::places::debugging_of;
use crate::project::file_stem;
use crate::shared::{Shared, environment_pythons};
use crate::tools::{Tools, run, succeeds};

const INSTALL: &str = "install one with `hotcell plugin setup c`, once for all plugins, or set `WASI_SDK_PATH` to the folder of a WASI SDK";
const TARGET: &str = "wasm32-wasi";
/// The file beside the source that says what the code offers.
const DESCRIPTION: &str = "description.json";

/// Gives the component and what `description.json` says that it offers.
pub(super) fn build(job: &mut Job<'_>) -> Result<Made, BuildError> {
    let source = job.source();
    let folder = source.parent().unwrap_or(job.directory).to_owned();
    let described = folder.join(DESCRIPTION);
    if !described.is_file() {
        let message =
            format!("`{}` is missing; it lists what the code offers, as in `{{\"tools\": […]}}`", described.display());
        return Err(BuildError::Description { message });
    }
    let offered = parse_offered(&read_file(&described)?, &format!("`{}`", described.display()))?;
    let (program, mut compiler) = find_compiler(job.tools, job.directory)?;
    let (resolve, world) = resolve(&job.world.folder)?;
    let bindings = job.work.join("bindings");
    create_folder(&bindings)?;
    write_bindings(&resolve, world, &bindings)?;
    let module = job.work.join("plugin.core.wasm");
    // An `assert` that fails says where; optimized code has them, too. Names of functions are kept for what is told of a trap, and
    // lines for where it was.
    compiler.args(["-mexec-model=reactor", "-std=c17", "-Os", "-g", "-UNDEBUG", "-Wall", "-Wextra"]);
    // Places are those in the project, whichever folder it is in.
    let mut places = OsString::from("-ffile-prefix-map=");
    places.push(job.directory);
    places.push("/=");
    compiler.arg(places).arg("-o").arg(&module);
    // Otherwise the project may be noted by a link that led to it.
    compiler.env("PWD", job.directory);
    for include in [&bindings, &job.sdk] {
        compiler.arg("-I").arg(include);
    }
    for import in &job.world.imports {
        compiler.arg(format!("-DHOTCELL_HAS_{}", import.replace('-', "_").to_uppercase()));
    }
    compiler.args(sources(&folder)?);
    for generated in [format!("{}.c", world::NAME), format!("{}_component_type.o", world::NAME)] {
        compiler.arg(bindings.join(generated));
    }
    job.says(&program, "to compile the plugin");
    run(&mut compiler, "to compile the plugin")?;
    let linked = read_file(&module)?;
    write_file(&debugging_of(&component_path(job.directory, &file_stem(&job.manifest.name))), &linked)?;
    let module = component::without_debugging(&linked)?;
    Ok(Made { component: componentize(&module)?, offered, read: None })
}

/// A compiler that can make modules for WASI, with its path for people.
pub(super) fn find_compiler(tools: &Tools, directory: &Path) -> Result<(PathBuf, Command), BuildError> {
    let with_target = |program: &Path| {
        let mut command = tools.command(program, directory);
        command.arg(format!("--target={TARGET}"));
        command
    };
    if let Some(sdk) = tools.wasi_sdk() {
        let clang = sdk.join("bin").join("clang");
        let command = with_target(&clang);
        return Ok((clang, command));
    }
    if let Some(clang) = tools.find(&["clang"]) {
        let mut probe = with_target(&clang);
        // A clang without the C library for WASI gives the bare name back.
        let found = probe.arg("-print-file-name=crt1-reactor.o").output().ok();
        if found.is_some_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute()) {
            let command = with_target(&clang);
            return Ok((clang, command));
        }
    }
    let zig = |mut command: Command| {
        command.args(["cc", "-target", TARGET]);
        command
    };
    if let Some(program) = tools.find(&["zig"]) {
        let command = zig(tools.command(&program, directory));
        return Ok((program, command));
    }
    let own = environment_pythons(&directory.join(".venv"));
    let shared = tools.shared(Shared::C).map(|folder| environment_pythons(&folder));
    let made = |pythons: [PathBuf; 2]| pythons.into_iter().filter(|python| python.is_file());
    let in_path = ["python3", "python"].iter().filter_map(|name| tools.find(&[name]));
    for python in made(own).chain(in_path).chain(shared.into_iter().flat_map(made)) {
        let module = || {
            let mut command = tools.command(&python, directory);
            command.args(["-m", "ziglang"]);
            command
        };
        if succeeds(module().arg("version")) {
            return Ok((python.clone(), zig(module())));
        }
    }
    Err(BuildError::missing("a C compiler for WASI", INSTALL))
}

/// All C files in the folder of the source.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let failed = |source| BuildError::Io { action: "list", path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn resolve(folder: &Path) -> Result<(Resolve, WorldId), BuildError> {
    let unusable = |message: String| BuildError::Interfaces { path: folder.to_owned(), message };
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder).map_err(|error| unusable(format!("{error:#}")))?;
    let world = resolve.select_world(&[package], Some(world::NAME)).map_err(|error| unusable(format!("{error:#}")))?;
    Ok((resolve, world))
}

fn write_bindings(resolve: &Resolve, world: WorldId, folder: &Path) -> Result<(), BuildError> {
    let options = wit_bindgen_c::Opts::default();
    let mut files = wit_bindgen_core::Files::default();
    let generated = options.build().generate(&mut resolve.clone(), world, &mut files);
    generated.map_err(|error| BuildError::Interfaces { path: folder.to_owned(), message: format!("{error:#}") })?;
    for (name, contents) in files.iter() {
        write_file(&folder.join(name), contents)?;
    }
    Ok(())
}

/// Makes a component of a module that was linked with the types of its world.
fn componentize(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encoder = ComponentEncoder::default().validate(true).module(module);
    let encoder = encoder.and_then(|encoder| {
        encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)
    });
    let component = encoder.and_then(|mut encoder| encoder.encode());
    component.map_err(|error| BuildError::Componentize { message: format!("{error:#}") })
}
