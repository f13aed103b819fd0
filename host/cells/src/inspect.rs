//! What the bytes of a plugin are, found out by reading their sections: nothing is compiled or run before they are
//! known to be of a kind, a size and with imports that this host serves.

use wasmparser::{ComponentExternalKind, Encoding, ExternalKind, Parser, Payload};

use crate::contract;
use crate::description::DESCRIPTION_SECTION;
use crate::text::one_line;

/// Bytes of what the parser says of a file that is not valid.
const MAX_PROBLEM: usize = 500;
/// Bytes that a plugin may have.
const MAX_BYTES: usize = 96 << 20;
/// Functions over all modules of a plugin.
const MAX_FUNCTIONS: u64 = 300_000;
/// Bytes of one function's body.
const MAX_BODY: usize = 2 << 20;
/// Modules and components nested in one plugin.
const MAX_PARTS: usize = 512;
/// Levels of components in components.
const MAX_NESTING: usize = 8;
/// Imports and exports of the plugin itself.
const MAX_NAMES: usize = 1_000;

/// The interfaces of WASI that a guest may import, whatever their patch version.
const WASI: [&str; 28] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
];
/// The one more name that WASI has for sockets.
const WASI_UDP_CREATE: &str = "wasi:sockets/udp-create-socket";
/// The module that WASI preview 1 modules import.
const PREVIEW_1: &str = "wasi_snapshot_preview1";

/// What the custom sections are called in which a module describes a component.
const COMPONENT_TYPE: &str = "component-type";

/// What a plugin is, before it is compiled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shape<'a> {
    /// A component, with the names it exports and its descriptions.
    Component {
        /// Names of exported instances and functions.
        exports: Vec<&'a str>,
        /// Names of what it imports.
        imports: Vec<&'a str>,
        /// Contents of the custom sections with the description.
        descriptions: Vec<&'a [u8]>,
    },
    /// A WASI preview 1 command.
    Preview1Command,
}

/// Why a file is not a plugin that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// The file is something else.
    #[error("it is {what}, not a WebAssembly component or WASI command")]
    NotWasm {
        /// What it looks like.
        what: &'static str,
    },
    /// It is compiled already, and only artefacts that hotcell made itself are trusted.
    #[error("it is an ahead-of-time compiled artefact; give the `.wasm` it was made from")]
    Precompiled,
    /// It is larger than what is read.
    #[error("it has {found} {what}, more than the {limit} that are accepted")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much is accepted.
        limit: u64,
    },
    /// Its structure is broken or uses WebAssembly that is switched off.
    #[error("it is not valid WebAssembly: {0}")]
    Invalid(String),
    /// It imports something that does not exist here.
    #[error("it imports `{import}`, which hotcell does not have{hint}")]
    UnknownImport {
        /// The import.
        import: String,
        /// The nearest that exists, as a clause.
        hint: String,
    },
    /// It is a library or for some other host.
    #[error("it exports nothing that hotcell calls: {0}")]
    NoEntry(String),
}

/// Finds out what `bytes` are.
pub(crate) fn inspect(bytes: &[u8]) -> Result<Shape<'_>, InspectError> {
    limit("bytes", bytes.len() as u64, MAX_BYTES as u64)?;
    if !bytes.starts_with(b"\0asm") {
        return Err(foreign(bytes));
    }
    let mut counts = Counts::default();
    let mut encoding = None;
    let mut depth = 0_usize;
    let mut found = Names::default();
    let mut inner = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(invalid)?;
        match &payload {
            Payload::Version { encoding: this, .. } => {
                encoding.get_or_insert(*this);
                counts.parts += 1;
                depth += 1;
                limit("nested components", depth as u64, MAX_NESTING as u64)?;
                limit("modules and components", counts.parts as u64, MAX_PARTS as u64)?;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CodeSectionStart { count, .. } => {
                counts.functions += u64::from(*count);
                limit("functions", counts.functions, MAX_FUNCTIONS)?;
            }
            Payload::CodeSectionEntry(body) => {
                limit("bytes in one function", body.range().len() as u64, MAX_BODY as u64)?;
            }
            _ if depth == 1 => found.read(&payload)?,
            // Where the linker of the guest's language put it.
            Payload::CustomSection(section) if section.name() == DESCRIPTION_SECTION => inner.push(section.data()),
            _ => {}
        }
    }
    match encoding {
        Some(Encoding::Component) => {
            if found.descriptions.is_empty() {
                found.descriptions = inner;
            }
            found.component()
        }
        _ => found.module(),
    }
}

#[derive(Default)]
struct Counts {
    functions: u64,
    parts: usize,
}

pub(crate) fn limit(what: &'static str, found: u64, limit: u64) -> Result<(), InspectError> {
    if found <= limit {
        return Ok(());
    }
    Err(InspectError::TooLarge { what, found, limit })
}

pub(crate) fn invalid(error: wasmparser::BinaryReaderError) -> InspectError {
    // What the parser found instead of what it expected, it shows as a list of several lines.
    let words: Vec<&str> = error.message().split_whitespace().collect();
    InspectError::Invalid(format!("{} at byte {}", one_line(&words.join(" "), MAX_PROBLEM), error.offset()))
}

/// What a file that does not begin like WebAssembly seems to be.
fn foreign(bytes: &[u8]) -> InspectError {
    let text = bytes.trim_ascii_start();
    match bytes {
        [] => InspectError::NotWasm { what: "empty" },
        _ if bytes.starts_with(b"\x7fELF") => InspectError::Precompiled,
        // Nothing is ever unpacked: what lies in an archive, and where it would go, does not matter.
        _ if bytes.starts_with(b"PK\x03\x04") => InspectError::NotWasm { what: "a zip archive" },
        _ if bytes.starts_with(b"\x1f\x8b") => InspectError::NotWasm { what: "a gzip archive" },
        _ if bytes.starts_with(b"\x28\xb5\x2f\xfd") => InspectError::NotWasm { what: "a zstd archive" },
        _ if bytes.get(257..262) == Some(b"ustar") => InspectError::NotWasm { what: "a tar archive" },
        _ if text.starts_with(b"(") || text.starts_with(b";;") => InspectError::NotWasm { what: "WebAssembly text" },
        _ if bytes.len() < 4 && b"\0asm".starts_with(bytes) => InspectError::NotWasm { what: "cut off" },
        _ if bytes.iter().take(1_000).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => {
            InspectError::NotWasm { what: "a text file" }
        }
        _ => InspectError::NotWasm { what: "some other binary file" },
    }
}

/// The imports, exports and descriptions of the outermost module or component.
#[derive(Default)]
struct Names<'a> {
    imports: Vec<&'a str>,
    exports: Vec<&'a str>,
    descriptions: Vec<&'a [u8]>,
    /// Whether a module says what component it is to become
    has_component_type: bool,
}

impl<'a> Names<'a> {
    fn read(&mut self, payload: &Payload<'a>) -> Result<(), InspectError> {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    note(&mut self.imports, "imports", import.map_err(invalid)?.name.name)?;
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export.map_err(invalid)?;
                    if matches!(export.kind, ComponentExternalKind::Instance | ComponentExternalKind::Func) {
                        note(&mut self.exports, "exports", export.name.name)?;
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.clone().into_imports() {
                    note(&mut self.imports, "imports", import.map_err(invalid)?.module)?;
                }
            }
            Payload::ExportSection(section) => {
                for export in section.clone() {
                    let export = export.map_err(invalid)?;
                    if export.kind == ExternalKind::Func {
                        note(&mut self.exports, "exports", export.name)?;
                    }
                }
            }
            Payload::CustomSection(section) if section.name() == DESCRIPTION_SECTION => {
                self.descriptions.push(section.data());
            }
            Payload::CustomSection(section) if section.name().starts_with(COMPONENT_TYPE) => {
                self.has_component_type = true
            }
            _ => {}
        }
        Ok(())
    }

    fn component(self) -> Result<Shape<'a>, InspectError> {
        limit("imports", self.imports.len() as u64, MAX_NAMES as u64)?;
        limit("exports", self.exports.len() as u64, MAX_NAMES as u64)?;
        for import in &self.imports {
            if !is_known(import) {
                return Err(InspectError::UnknownImport { import: shown(import), hint: hint(import) });
            }
        }
        Ok(Shape::Component { exports: self.exports, imports: self.imports, descriptions: self.descriptions })
    }

    fn module(self) -> Result<Shape<'a>, InspectError> {
        if let Some(import) = self.imports.iter().find(|module| **module != PREVIEW_1) {
            let hint = format!("; a core module may import only `{PREVIEW_1}`, and a component more");
            return Err(InspectError::UnknownImport { import: shown(import), hint });
        }
        // It would be believed when the module is made a component, and a command has nothing to say there.
        if self.has_component_type {
            return Err(InspectError::Invalid(format!(
                "it is a core module with a section `{COMPONENT_TYPE}`; give the component that is made of it"
            )));
        }
        if !self.exports.contains(&"_start") {
            return Err(InspectError::NoEntry(
                "a core module has to be a WASI command, with a function `_start`".to_owned(),
            ));
        }
        Ok(Shape::Preview1Command)
    }
}

/// Takes a name. A section may have millions of them in a few bytes each.
fn note<'a>(names: &mut Vec<&'a str>, what: &'static str, name: &'a str) -> Result<(), InspectError> {
    names.push(name);
    limit(what, names.len() as u64, MAX_NAMES as u64 * 10)
}

/// A name of the guest's, safe to show.
fn shown(name: &str) -> String {
    crate::text::one_line(name, 200)
}

/// An interface name without its version, and the version.
fn split_version(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, ""))
}

/// Versions that this host serves: any 0.2 of WASI, all of the contract.
fn is_known(import: &str) -> bool {
    let (name, version) = split_version(import);
    if WASI.contains(&name) || name == WASI_UDP_CREATE {
        return version.starts_with("0.2.") && !version.contains('-');
    }
    contract::IMPORTS.iter().any(|interface| interface.names().any(|known| known == import))
}

/// The nearest import that exists, as the end of a sentence.
fn hint(import: &str) -> String {
    let (name, version) = split_version(import);
    let wasi = WASI.into_iter().chain([WASI_UDP_CREATE]).map(|name| (name.to_owned(), "0.2".to_owned()));
    let contract = contract::IMPORTS.iter().filter_map(|interface| {
        let newest = interface.names().last()?;
        let (name, version) = split_version(&newest);
        Some((name.to_owned(), version.to_owned()))
    });
    let known: Vec<(String, String)> = wasi.chain(contract).collect();
    if let Some((_, offered)) = known.iter().find(|(known, _)| known == name) {
        let version = shown(version);
        return format!(" in version `{version}`: this hotcell offers version {offered} of it");
    }
    let nearest = known.iter().max_by(|(left, _), (right, _)| {
        let likeness = |known: &str| strsim::jaro_winkler(known, name);
        likeness(left).total_cmp(&likeness(right))
    });
    nearest.map(|(nearest, _)| format!("; the nearest that it has is `{nearest}`")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Shape, inspect};

    fn message(bytes: &[u8]) -> String {
        inspect(bytes).map_or_else(|error| error.to_string(), |shape| format!("accepted as {shape:?}"))
    }

    fn wasm(text: &str) -> Vec<u8> {
        wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn attack_58_what_is_not_wasm_is_named() {
        let cut = wasm("(module (func (export \"_start\") (call 0)))");
        let cases: [(&[u8], &str); 9] = [
            (b"", "it is empty,"),
            (b"\0as", "it is cut off,"),
            (b"(module)", "it is WebAssembly text,"),
            (b"  ;; comment\n(component)", "it is WebAssembly text,"),
            (b"print('hello')", "it is a text file,"),
            (b"\x89PNG\r\n", "it is some other binary file,"),
            (b"\x7fELF\x02\x01\x01", "give the `.wasm` it was made from"),
            (&cut[..cut.len() - 3], "it is not valid WebAssembly: "),
            (
                b"\0asm\x0d\0\x01\0\x01\x08\0\0\0\0\x01\0\0\0",
                "it is not valid WebAssembly: magic header not detected: bad magic number - expected=[ 0x0, 0x61, 0x73, 0x6d, ]",
            ),
        ];
        for (bytes, expected) in cases {
            let message = message(bytes);
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn attack_59_names_are_counted_while_they_are_read() {
        // It says that it has twenty thousand imports, and has half of them.
        let imports = [&[0xa0, 0x9c, 0x01][..], &b"\x01a\x01a\0\0".repeat(10_001)].concat();
        let seven = |from: usize| (imports.len() >> from) as u8 & 0x7f;
        let size = [seven(0) | 0x80, seven(7) | 0x80, seven(14)];
        let module = [&b"\0asm\x01\0\0\0\x02"[..], &size, &imports].concat();
        assert!(message(&module).contains("it has 10001 imports"), "{}", message(&module));
    }

    #[test]
    fn attack_62_an_archive_is_no_plugin_and_is_not_unpacked() {
        let tar = |name: &str| {
            let mut block = vec![0; 1_024];
            block[..name.len()].copy_from_slice(name.as_bytes());
            block[257..262].copy_from_slice(b"ustar");
            block
        };
        let mut zip = b"PK\x03\x04".to_vec();
        zip.extend([0; 22]);
        zip.extend(b"\x0e\0\0\0../../evil.wasm\0asm");
        let manifest = br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[]}"#;
        let cases: [(&[u8], &str); 6] = [
            (&zip, "it is a zip archive,"),
            (&tar("../../evil.wasm"), "it is a tar archive,"),
            (&tar("/etc/evil.wasm"), "it is a tar archive,"),
            (b"\x1f\x8b\x08\0layer", "it is a gzip archive,"),
            (b"\x28\xb5\x2f\xfdlayer", "it is a zstd archive,"),
            (manifest, "it is a text file,"),
        ];
        for (bytes, expected) in cases {
            let message = message(bytes);
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
    }

    #[test]
    fn attack_67_68_unknown_imports_are_named_with_the_nearest_known_one() {
        let component = |name: &str| wasm(&format!("(component (import \"{name}\" (instance)))"));
        let cases = [
            (component("hotcell:plugin/stat@0.1.0"), "nearest that it has is `hotcell:plugin/state`"),
            (component("hotcell:plugin/state@0.3.0"), "in version `0.3.0`: this hotcell offers version 0.2.0"),
            (component("hotcell:plugin/kv@0.1.0"), "in version `0.1.0`: this hotcell offers version 0.2.0"),
            (component("hotcell:cell/http@0.1.0"), "imports `hotcell:cell/http@0.1.0`, which hotcell does not have"),
            (component("wasi:cli/environment@0.3.0"), "in version `0.3.0`: this hotcell offers version 0.2"),
            (component("wasi:cli/enviroment@0.2.0"), "nearest that it has is `wasi:cli/environment`"),
            (wasm("(module (import \"env\" \"f\" (func)))"), "imports `env`, which hotcell does not have"),
            (wasm("(module (func (export \"run\")))"), "with a function `_start`"),
        ];
        for (bytes, expected) in cases {
            let message = message(&bytes);
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
    }

    #[test]
    fn known_imports_and_commands_are_accepted() {
        for name in [
            "wasi:cli/environment@0.2.9",
            "wasi:sockets/udp-create-socket@0.2.0",
            "hotcell:plugin/log@0.1.0",
            "hotcell:plugin/kv@0.2.0",
        ] {
            let bytes = wasm(&format!("(component (import \"{name}\" (instance)))"));
            assert!(matches!(inspect(&bytes), Ok(Shape::Component { .. })), "{name}: {}", message(&bytes));
        }
        let command = wasm("(module (func (export \"_start\")))");
        assert_eq!(inspect(&command), Ok(Shape::Preview1Command));
    }

    #[test]
    fn attack_59_60_what_is_too_much_is_refused_before_compiling() {
        let many = wasm(&format!("(component {})", "(core module)".repeat(600)));
        let deep = wasm(&format!("{}{}", "(component ".repeat(20), ")".repeat(20)));
        let body = wasm(&format!("(module (func (export \"_start\") {}))", "(drop (i32.const 1))".repeat(800_000)));
        for (bytes, expected) in
            [(many, "modules and components"), (deep, "nested components"), (body, "bytes in one function")]
        {
            let message = message(&bytes);
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
    }
}
