//! Reading what an agent can look up. A knowledge service is a folder of documents beside the mesh, and its groups are folders in it.

use std::iter;

use super::reading::Reading;
use super::schema::{AgentType, Knowledge};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind};
use crate::knowledge_base::KnowledgeBaseSource;
use crate::surroundings::{FileState, KnowledgeBase};

/// The folder with those of all services.
const FOLDER: &str = "knowledge";
/// What the names of their knowledge bases begin with: a file that begins with a dot is not looked at for an agent.
const BASE: &str = ".knowledge";
/// How many characters the name of a service or a group may have.
const MAX_NAME: usize = 64;
/// How the documents are cut, in tokens; a mesh cannot say.
const CHUNK: u32 = 1000;
const OVERLAP: u32 = 50;

/// What an agent can look up. Where that is nothing, it works all the same and is told.
///
/// Whether its graph looks anything up depends on the folder alone, which is part of a revision. The knowledge base and its
/// model are not: a run has to find the graph that it began with, whatever became of them.
pub(super) fn knowledge<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    own: AgentType,
) -> Option<Knowledge> {
    let entry = fields.entry("knowledge", Optional)?;
    match &entry.value.kind {
        Kind::Map(_) => {}
        Kind::Bool(true) => {
            let error = fields.error("`knowledge: true` does not say which", &reading.reader.span(entry.value.place));
            reading.reader.report(error.help("name the provider: `knowledge: {serviceName: ...}`"));
            return None;
        }
        _ => {
            fields.flag("knowledge", Optional);
            return None;
        }
    }
    let mut of_one = reading.block(fields, "knowledge")?;
    let service = of_one.text("serviceName", Required);
    let enabled = of_one.flag("enabled", Optional).is_none_or(|flag| flag.value);
    let group = of_one.text("groupName", Optional);
    of_one.finish(|_| None);
    let service = service.filter(|_| enabled)?;

    let warn = |message: String, help: String| {
        let warning = reading.warning(&*fields, message, entry.value.place);
        reading.reader.report(warning.help(help));
    };
    let missing = || format!("there is no knowledge service `{}`", &*service);
    let names: Vec<&str> = iter::once(&*service).chain(group.as_deref()).collect();
    if !names.iter().all(|name| is_plain(name)) {
        let help = format!(
            "the agent works without it, and its input has `knowledge_unavailable: true`; names of services and groups have \
             letters, digits, `_` and `-`, at most {MAX_NAME}"
        );
        warn(missing(), help);
        return Some(Knowledge::Unavailable);
    }
    let folder = format!("{FOLDER}/{}", names.join("/"));
    if reading.surroundings.documents(&folder) != FileState::Present {
        let help = format!(
            "put its documents into the folder `{folder}` beside this file; without them, the agent works, and its input has \
             `knowledge_unavailable: true`"
        );
        warn(missing(), help);
        return Some(Knowledge::Unavailable);
    }
    if own != AgentType::Llm {
        let message = format!("`knowledge` of {} has no effect: only models get what is found", fields.owner().what);
        warn(message, "the input of the agent has `knowledge_unavailable: true`".to_owned());
        return Some(Knowledge::Unavailable);
    }
    let node = format!("{BASE}.{}", names.join("."));
    let state = reading.surroundings.knowledge_base(&node);
    let model = reading.surroundings.embedding_model();
    if state == KnowledgeBase::NotBuilt && model.is_none() {
        let message = format!("no embedding model is named for the knowledge service `{}`", &*service);
        let help = "name one in the environment variable `HOTCELL_EMBEDDING_MODEL`; without it, the agent works, and its \
                    input has `knowledge_unavailable: true`";
        warn(message, help.to_owned());
    }
    Some(Knowledge::Base(Box::new(KnowledgeBaseSource {
        node,
        documents: vec![folder],
        // One that is built keeps its model.
        embedding_model: model.filter(|_| state != KnowledgeBase::Built),
        chunk_size: Some(CHUNK),
        chunk_overlap: Some(OVERLAP),
        reranker_model: None,
        batch_size: None,
        is_optional: true,
        span: reading.reader.span(entry.value.place),
    })))
}

/// Whether a name is one of a folder, and of nothing else: it leads nowhere, and is no pattern of documents.
fn is_plain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(fits)
}
