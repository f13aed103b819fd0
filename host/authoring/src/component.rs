//! What a finished component has: exports, imports and the one description.

use wasm_encoder::{ComponentSection, CustomSection, Module, RawSection};
use wasmparser::{Encoding, Parser, Payload};

/// The name of the custom section with the description.
pub const DESCRIPTION_SECTION: &str = "hotcell:description";

/// Why a built file is not a component that can be described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComponentError {
    /// It is something else.
    #[error("it is not a WebAssembly component")]
    NotAComponent,
    /// It cannot be read.
    #[error("it is not valid WebAssembly: {message} at byte {offset}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// Where.
        offset: u64,
    },
}

/// The parts of a component that matter to its author.
#[derive(Debug, Default)]
pub(crate) struct Parts<'a> {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
    /// The contents of all sections with a description, also in modules inside.
    pub(crate) descriptions: Vec<&'a [u8]>,
}

/// Reads a component without compiling it.
pub(crate) fn read(bytes: &[u8]) -> Result<Parts<'_>, ComponentError> {
    let mut parts = Parts::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(invalid)? {
            Payload::Version { encoding, .. } => {
                if depth == 0 && encoding != Encoding::Component {
                    return Err(ComponentError::NotAComponent);
                }
                depth += 1;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == DESCRIPTION_SECTION => {
                parts.descriptions.push(section.data());
            }
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    parts.imports.push(import.map_err(invalid)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    parts.exports.push(export.map_err(invalid)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(parts)
}

fn invalid(error: wasmparser::BinaryReaderError) -> ComponentError {
    ComponentError::Invalid { message: error.message().to_owned(), offset: error.offset() as u64 }
}

/// A module without the sections that only debuggers read, which are most of it. The names of functions stay.
pub(crate) fn without_debugging(module: &[u8]) -> Result<Vec<u8>, ComponentError> {
    let mut kept = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(invalid)?;
        if matches!(&payload, Payload::CustomSection(section) if section.name().starts_with(".debug_")) {
            continue;
        }
        if let Some((id, range)) = payload.as_section() {
            kept.section(&RawSection { id, data: &module[range] });
        }
    }
    Ok(kept.finish())
}

/// Puts a description at the end of a component.
pub(crate) fn add_description(component: &mut Vec<u8>, description: &[u8]) {
    let section = CustomSection { name: DESCRIPTION_SECTION.into(), data: description.into() };
    section.append_to_component(component);
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{CustomSection, MemorySection, MemoryType, Module};

    use super::{ComponentError, add_description, read, without_debugging};

    #[test]
    fn what_only_debuggers_read_is_left_out_and_the_rest_stays() {
        let module = |customs: &[&'static str]| {
            let mut module = Module::new();
            let mut memories = MemorySection::new();
            memories.memory(MemoryType {
                minimum: 1,
                maximum: None,
                memory64: false,
                shared: false,
                page_size_log2: None,
            });
            module.section(&memories);
            for custom in customs {
                module.section(&CustomSection { name: (*custom).into(), data: b"x".as_slice().into() });
            }
            module.finish()
        };
        let whole = module(&[".debug_info", "name", ".debug_line", "producers"]);
        assert_eq!(without_debugging(&whole), Ok(module(&["name", "producers"])));
        assert!(matches!(without_debugging(&whole[..whole.len() - 1]), Err(ComponentError::Invalid { .. })));
    }

    #[test]
    fn a_description_that_was_added_is_found() {
        let mut component = wasm_encoder::Component::new().finish();
        assert!(read(&component).expect("a component").descriptions.is_empty());
        add_description(&mut component, b"{}");
        assert_eq!(read(&component).expect("a component").descriptions, [b"{}"]);
        component.truncate(component.len() - 1);
        assert!(matches!(read(&component), Err(ComponentError::Invalid { .. })));
    }

    #[test]
    fn a_module_is_no_component() {
        let module = wasm_encoder::Module::new().finish();
        assert!(matches!(read(&module), Err(ComponentError::NotAComponent)));
    }
}
