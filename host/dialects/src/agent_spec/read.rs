//! From texts to a configuration: references followed, components validated, what is implied written out.

use std::sync::Arc;

use hotcell_graph::Courtesy;
use hotcell_graph::diagnostic::{self, Diagnostic, Severity, SourceFile};

use super::builder::Builder;
use super::model::Configuration;
use super::sources::{COMPONENT_TYPE, Located, Part, REFERENCED, Sources, version};
use super::versions::Version;
use super::{check, ids};
use crate::document::{self, Document, Kind};
use crate::surroundings::Surroundings;

/// Reads and checks a configuration. There is one if there is no error among the diagnostics.
pub fn read(
    file: &Arc<SourceFile>,
    parts: &[Part],
    surroundings: &dyn Surroundings,
) -> (Option<Configuration>, Vec<Diagnostic>) {
    let _courtesy = Courtesy::for_a_file();
    let mut diagnostics = Vec::new();
    let mut documents = Vec::new();
    for file in std::iter::once(file).chain(parts.iter().map(|part| &part.file)) {
        let (document, found) = document::parse(file);
        diagnostics.extend(found);
        documents.extend(document);
    }
    let configuration = if documents.len() == parts.len() + 1 {
        configuration(&documents, parts, surroundings, &mut diagnostics)
    } else {
        None
    };
    diagnostic::sort(&mut diagnostics);
    diagnostics.dedup();
    document::keep_first(&mut diagnostics);
    let has_error = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    (configuration.filter(|_| !has_error), diagnostics)
}

fn configuration(
    documents: &[Document],
    parts: &[Part],
    surroundings: &dyn Surroundings,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Configuration> {
    let mut sources = Sources::new(documents, parts, diagnostics);
    let root = sources.root();
    if !is_configuration(root, &sources, diagnostics) {
        return None;
    }
    let of_root = version(root, &sources, diagnostics);
    // Without a version that is known, nothing can be said about the rest.
    let own = of_root.ok()?.unwrap_or(Version::NEWEST);
    let mut versions = vec![own];
    for (index, document) in documents.iter().enumerate().skip(1) {
        let of_part = version(root.of_document(&document.root, index), &sources, diagnostics).ok()?;
        versions.push(of_part.unwrap_or(own));
    }
    let mut builder = Builder::new(&mut sources, versions, surroundings);
    let root = builder.document();
    let (built, found) = builder.finish();
    let broken = found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    diagnostics.extend(found);
    ids::check(&built, diagnostics);
    let root = root.filter(|_| !broken)?;
    let (configuration, places) = ids::arrange(own, !parts.is_empty(), root, built);
    diagnostics.extend(check::check(&configuration, &places, surroundings));
    Some(configuration)
}

/// Whether the document is one component or a reference to one.
fn is_configuration(root: Located<'_>, sources: &Sources<'_>, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let span = sources.span(0, root.node.place);
    let error = match &root.node.kind {
        Kind::Map(_) if root.is_component() || root.reference().is_some() => return true,
        Kind::Map(_) if root.node.get(REFERENCED).is_some() => Diagnostic::error(format!(
            "the file has only `{REFERENCED}`: it holds parts of a configuration, and is not a configuration itself \
             because `{COMPONENT_TYPE}` is missing at its top"
        ))
        .help("load the configuration that uses these parts, and hand this file in beside it"),
        Kind::Map(_) => Diagnostic::error(format!("the field `{COMPONENT_TYPE}` is missing at the top of the file"))
            .help("a configuration is one component, and this field tells its type"),
        _ => Diagnostic::error(format!("a configuration is one component, and this is {}", root.node.describe()))
            .help(format!("write the fields of the component at the top of the file, `{COMPONENT_TYPE}` among them")),
    };
    diagnostics.push(error.at(&span));
    false
}
