//! Where in its author's source a component trapped, by the debugging information that compilers write.
//!
//! C is compiled with it. It is kept in a file beside the component and not inside, so that it changes neither the digest nor
//! what ships. A component that cargo makes has it inside where the author's profile asks for it.
//!
//! It is a help and no more: whatever is missing or damaged leaves out the place, and never the trap.

use std::convert::Infallible;
use std::panic;
use std::path::{Component, Path, PathBuf};

use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use addr2line::{Context, Location};
use wasmparser::{Parser, Payload};

/// Functions inlined into each other that are looked at for one place.
const MOST_INLINED: usize = 64;
/// Folders of a project with code that its author did not write, beside hidden ones.
const NOT_THE_AUTHORS: [&str; 2] = ["build", "sdk"];

/// The file beside a component with the module that it was made of, debugging information included.
pub(crate) fn debugging_of(component: &Path) -> PathBuf {
    component.with_extension("debug")
}

/// Where in the source of a project the code at these offsets in its component comes from, such as `src/plugin.c:12:5`.
///
/// `component` is the file that a build made of it. There is one answer for each offset, and none where no line of the
/// author's is known for it. Paths are relative to the project.
#[must_use]
pub fn source_places(component: &Path, offsets: &[u64]) -> Vec<Option<String>> {
    let read = |path: &Path| hotcell_files::read(path, hotcell_files::MAX_COMPONENT).unwrap_or_default();
    // It is in the folder `build` of the project.
    let project = component.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    places(&read(component), &read(&debugging_of(component)), project, offsets)
}

/// The same for the bytes of the component and of the file beside it.
fn places(component: &[u8], beside: &[u8], project: &Path, offsets: &[u64]) -> Vec<Option<String>> {
    // Whatever a compiler wrote, the trap is what is to be told.
    let found = panic::catch_unwind(|| look_up(component, beside, project, offsets));
    found.unwrap_or_else(|_| vec![None; offsets.len()])
}

fn look_up(component: &[u8], beside: &[u8], project: &Path, offsets: &[u64]) -> Vec<Option<String>> {
    let beside = modules(beside);
    let mut found = vec![None; offsets.len()];
    for module in modules(component) {
        if !offsets.iter().any(|offset| module.offset_in_code(*offset).is_some()) {
            continue;
        }
        // A file that was left by another build is of other code.
        let kept = if module.debugging.is_empty() { beside.iter().find(|kept| kept.code == module.code) } else { None };
        let Some(context) = kept.unwrap_or(&module).context() else { continue };
        for (offset, place) in offsets.iter().zip(&mut found) {
            if let Some(at) = module.offset_in_code(*offset) {
                *place = place_in(&context, at, project);
            }
        }
    }
    found
}

/// A core module, alone or in a component.
#[derive(Default)]
struct Module<'a> {
    /// Where the code begins in the bytes of the file.
    start: u64,
    /// The code section.
    code: &'a [u8],
    /// Sections of debugging information, by their names.
    debugging: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Module<'a> {
    /// What debugging information has as the address of the code at an offset in the file.
    fn offset_in_code(&self, offset: u64) -> Option<u64> {
        offset.checked_sub(self.start).filter(|at| *at < self.code.len() as u64)
    }

    fn context(&self) -> Option<Context<EndianSlice<'a, LittleEndian>>> {
        let load = |id: SectionId| -> Result<EndianSlice<'a, LittleEndian>, Infallible> {
            let found = self.debugging.iter().find(|(name, _)| *name == id.name());
            Ok(EndianSlice::new(found.map(|(_, data)| *data).unwrap_or_default(), LittleEndian))
        };
        let dwarf = Dwarf::load(load).ok()?;
        Context::from_dwarf(dwarf).ok()
    }
}

/// The modules in a file, as far as it can be read.
fn modules(bytes: &[u8]) -> Vec<Module<'_>> {
    let (mut open, mut found): (Vec<Module<'_>>, Vec<Module<'_>>) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload {
            Ok(Payload::Version { .. }) => open.push(Module::default()),
            Ok(Payload::End(_)) => found.extend(open.pop()),
            Ok(Payload::CodeSectionStart { range, .. }) => {
                if let Some(module) = open.last_mut() {
                    module.start = range.start as u64;
                    module.code = bytes.get(range).unwrap_or_default();
                }
            }
            Ok(Payload::CustomSection(section)) if section.name().starts_with(".debug_") => {
                if let Some(module) = open.last_mut() {
                    module.debugging.push((section.name(), section.data()));
                }
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    found
}

/// The innermost line of the author's for an address: functions of the SDK are inlined into those that call them.
fn place_in(context: &Context<EndianSlice<'_, LittleEndian>>, address: u64, project: &Path) -> Option<String> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    for _ in 0..MOST_INLINED {
        let frame = frames.next().ok()??;
        if let Some(place) = frame.location.as_ref().and_then(|location| place(location, project)) {
            return Some(place);
        }
    }
    None
}

/// A line of the author's, as people read it.
fn place(location: &Location<'_>, project: &Path) -> Option<String> {
    let (file, line) = (Path::new(location.file?), location.line?);
    let inside = file.strip_prefix(project).unwrap_or(file);
    let file: PathBuf = inside.components().filter(|part| *part != Component::CurDir).collect();
    let is_inside = file.components().all(|part| matches!(part, Component::Normal(_)));
    let is_hidden = file.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
    if !is_inside || is_hidden || NOT_THE_AUTHORS.iter().any(|folder| file.starts_with(folder)) {
        return None;
    }
    let column = location.column.filter(|column| *column > 0).map(|column| format!(":{column}")).unwrap_or_default();
    Some(format!("{}:{line}{column}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use addr2line::Location;
    use wasm_encoder::{ComponentSectionId, Module, RawSection};

    use super::{modules, place, places};
    use crate::component::without_debugging;

    /// Made of the file beside it, which is `src/plugin.c` to the compiler, with `zig cc -target wasm32-wasi
    /// -mexec-model=reactor -std=c17 -Os -g -nostdlib -Wl,--no-entry` and no path of the machine in it.
    const MODULE: &[u8] = include_bytes!("places/fixture/plugin.wasm");
    /// Addresses in it with what is there and where that comes from: a division, a call of a function, a trap that is inlined.
    const KNOWN: [(usize, u8, &str); 3] =
        [(0x40, 0x6d, "src/plugin.c:2:21"), (0x10, 0x10, "src/plugin.c:11:27"), (0x37, 0x00, "src/plugin.c:6:17")];

    /// A component with this module behind another one, and where the code of the module begins.
    fn component_of(module: &[u8]) -> (Vec<u8>, usize) {
        let id: u8 = ComponentSectionId::CoreModule.into();
        let other = Module::new().finish();
        let mut component = wasm_encoder::Component::new();
        component.section(&RawSection { id, data: &other }).section(&RawSection { id, data: module });
        let bytes = component.finish();
        let code = modules(module)[0].code;
        let start = bytes.windows(code.len()).position(|window| window == code).expect("the code");
        (bytes, start)
    }

    fn bare() -> Vec<u8> {
        without_debugging(MODULE).expect("a module")
    }

    #[test]
    fn code_is_found_in_its_source() {
        for (module, beside) in [(MODULE.to_vec(), &MODULE[..0]), (bare(), MODULE)] {
            let (component, start) = component_of(&module);
            for (address, instruction, expected) in KNOWN {
                assert_eq!(component[start + address], instruction);
                let found = places(&component, beside, Path::new("/home/x"), &[u64::MAX, (start + address) as u64]);
                assert_eq!(found, [None, Some(expected.to_owned())]);
            }
        }
    }

    #[test]
    fn what_is_not_known_has_no_place() {
        let (component, start) = component_of(&bare());
        let division = (start + KNOWN[0].0) as u64;
        let found = |beside: &[u8], offset: u64| places(&component, beside, Path::new("/home/x"), &[offset]).remove(0);
        assert_eq!(found(MODULE, division).as_deref(), Some(KNOWN[0].2));
        assert_eq!(found(&[], division), None, "nothing is beside it");
        for offset in [0, start as u64 - 1, start as u64, component.len() as u64] {
            assert_eq!(found(MODULE, offset), None, "no line is there");
        }
        let mut other = MODULE.to_vec();
        let code = modules(MODULE)[0].start as usize;
        other[code + KNOWN[0].0 - 1] = 0;
        assert_eq!(found(&other, division), None, "the file is of other code");
    }

    #[test]
    fn damaged_debugging_does_no_harm() {
        let (component, start) = component_of(&bare());
        let offsets = KNOWN.map(|(address, _, _)| (start + address) as u64);
        let found = |beside: &[u8]| places(&component, beside, Path::new("/home/x"), &offsets);
        for length in 0..MODULE.len() {
            for (place, (_, _, expected)) in found(&MODULE[..length]).iter().zip(KNOWN) {
                assert!(place.as_deref().is_none_or(|place| place == expected), "{length}: {place:?}");
            }
        }
        for at in 0..MODULE.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = MODULE.to_vec();
                damaged[at] = byte;
                assert_eq!(found(&damaged).len(), offsets.len());
            }
        }
    }

    #[test]
    fn only_lines_of_the_author_are_places() {
        let found =
            |file: &str| place(&Location { file: Some(file), line: Some(3), column: Some(0) }, Path::new("/home/x"));
        for file in ["/home/x/src/lib.rs", "./src/lib.rs", "src/./lib.rs"] {
            assert_eq!(found(file).as_deref(), Some("src/lib.rs:3"), "{file}");
        }
        for file in
            ["/home/x/sdk/a.h", "build/a.c", "../a.c", "/home/y/a.c", "/home/x/.venv/a.c", "/rustc/1/core/src/lib.rs"]
        {
            assert_eq!(found(file), None, "{file}");
        }
        let nowhere = Location { file: Some("src/a.c"), line: None, column: None };
        assert_eq!(place(&nowhere, Path::new("/home/x")), None);
    }
}
