//! The files that a file names, each read once, and never within itself.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile, Span};

use super::schema::{Agent, Workflow};
use crate::document::{self, Node, Reader, SourceText};
use crate::surroundings::{Surroundings, Unavailable};

/// Files that one may lead to, those that they name included.
const MAX_FILES: usize = 256;
/// How deeply workflows and agents may be written inside of each other.
const MAX_INLINE: usize = 16;

/// What to do about a file that cannot be read.
pub(super) const RELATIVE: &str = "paths are relative to the file that contains them";

/// How a definition of a kind is read, wherever it stands.
type Reading<T> = for<'d> fn(&Reader<'d>, &'d Node, &Files<'_>) -> Option<T>;

/// How the definitions are read that a file may have or name. They name files in turn, so they are not named here.
pub(super) struct Readings {
    pub(super) workflow: Reading<Workflow>,
    pub(super) agent: Reading<Agent>,
}

/// The files around the first one.
pub(super) struct Files<'s> {
    pub(super) surroundings: &'s dyn Surroundings,
    readings: Readings,
    /// What stands before the names of files where they are shown
    shown: String,
    diagnostics: RefCell<Vec<Diagnostic>>,
    /// The files that are being read, the first one first
    open: RefCell<Vec<String>>,
    /// How many are written inside of others at this point
    inline: Cell<usize>,
    workflows: RefCell<HashMap<String, Option<Arc<Workflow>>>>,
    agents: RefCell<HashMap<String, Option<Arc<Agent>>>>,
}

impl<'s> Files<'s> {
    pub(super) fn new(first: &SourceFile, surroundings: &'s dyn Surroundings, readings: Readings) -> Self {
        let name = &first.name;
        let (shown, own) = name.rfind(['/', '\\']).map_or(("", &**name), |at| name.split_at(at + 1));
        Files {
            surroundings,
            readings,
            shown: shown.to_owned(),
            diagnostics: RefCell::default(),
            open: RefCell::new(vec![own.to_owned()]),
            inline: Cell::new(0),
            workflows: RefCell::default(),
            agents: RefCell::default(),
        }
    }

    pub(super) fn report(&self, diagnostic: Diagnostic) {
        document::report(&mut self.diagnostics.borrow_mut(), diagnostic);
    }

    /// Whether no diagnostic of this severity is taken any more.
    pub(super) fn is_full_of(&self, severity: Severity) -> bool {
        !document::has_room(&self.diagnostics.borrow(), severity)
    }

    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics.into_inner()
    }

    /// The workflow of the first file.
    pub(super) fn entry_workflow(&self, file: &Arc<SourceFile>) -> Option<Arc<Workflow>> {
        self.parse(file, |reader| (self.readings.workflow)(reader, &reader.document().root, self)).map(Arc::new)
    }

    /// The agent of the first file.
    pub(super) fn entry_agent(&self, file: &Arc<SourceFile>) -> Option<Arc<Agent>> {
        self.parse(file, |reader| (self.readings.agent)(reader, &reader.document().root, self)).map(Arc::new)
    }

    /// The workflow in a file that is named.
    pub(super) fn workflow(&self, path: &SourceText) -> Option<Arc<Workflow>> {
        let read = |reader: &Reader<'_>| (self.readings.workflow)(reader, &reader.document().root, self);
        self.named(path, "workflow", &self.workflows, read)
    }

    /// The agent in a file that is named.
    pub(super) fn agent(&self, path: &SourceText) -> Option<Arc<Agent>> {
        let read = |reader: &Reader<'_>| (self.readings.agent)(reader, &reader.document().root, self);
        self.named(path, "agent", &self.agents, read)
    }

    /// The workflow that is written inside of something else.
    pub(super) fn inline_workflow<'d>(&self, reader: &Reader<'d>, node: &'d Node) -> Option<Arc<Workflow>> {
        self.inline(&reader.span(node.place), || (self.readings.workflow)(reader, node, self)).map(Arc::new)
    }

    /// Reads what is written inside of something else, unless that goes too deep.
    pub(super) fn inline<T>(&self, span: &Span, read: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.inline.get() >= MAX_INLINE {
            let message = format!("definitions inside of each other go more than {MAX_INLINE} deep");
            self.report(Diagnostic::error(message).at(span).help("put some of them into files of their own"));
            return None;
        }
        self.inline.set(self.inline.get() + 1);
        let read = read();
        self.inline.set(self.inline.get() - 1);
        read
    }

    fn named<T>(
        &self,
        path: &SourceText,
        noun: &str,
        known: &RefCell<HashMap<String, Option<Arc<T>>>>,
        read: impl FnOnce(&Reader<'_>) -> Option<T>,
    ) -> Option<Arc<T>> {
        let own = self.resolve(path);
        let circle = {
            let open = self.open.borrow();
            open.iter().position(|file| *file == own).map(|at| {
                let way: Vec<&str> = open[at..].iter().map(String::as_str).chain([&*own]).collect();
                way.join(" -> ")
            })
        };
        if let Some(way) = circle {
            let message = format!("the {noun} in `{}` contains itself: {way}", &**path);
            self.report(Diagnostic::error(message).at(&path.span).help("take one of these references out"));
            return None;
        }
        if let Some(known) = known.borrow().get(&own) {
            return known.clone();
        }
        if self.workflows.borrow().len() + self.agents.borrow().len() >= MAX_FILES {
            let message = format!("`{}` is not read: the file names more than {MAX_FILES} others", &**path);
            self.report(Diagnostic::error(message).at(&path.span));
            return None;
        }
        let text = match self.surroundings.read(&own, None) {
            Ok(text) => text,
            Err(reason) => {
                let message = format!("the {noun} `{}` cannot be read: {reason}", &**path);
                self.report(Diagnostic::error(message).at(&path.span).help(RELATIVE));
                known.borrow_mut().insert(own, None);
                return None;
            }
        };
        let file = Arc::new(SourceFile { name: format!("{}{own}", self.shown), text: text.to_string() });
        self.open.borrow_mut().push(own.clone());
        let found = self.parse(&file, read).map(Arc::new);
        self.open.borrow_mut().pop();
        known.borrow_mut().insert(own, found.clone());
        found
    }

    fn parse<T>(&self, file: &Arc<SourceFile>, read: impl FnOnce(&Reader<'_>) -> Option<T>) -> Option<T> {
        let (document, diagnostics) = document::parse(file);
        diagnostics.into_iter().for_each(|diagnostic| self.report(diagnostic));
        let document = document?;
        let reader = Reader::new(&document);
        let found = read(&reader);
        reader.into_diagnostics().into_iter().for_each(|diagnostic| self.report(diagnostic));
        found
    }

    /// A path that the file that is being read names, from the folder of the first one.
    pub(super) fn resolve(&self, path: &str) -> String {
        if path.starts_with(['/', '\\']) || path.contains("://") {
            return path.to_owned();
        }
        let open = self.open.borrow();
        let here = open.last().map_or("", String::as_str);
        let folder = here.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut parts: Vec<&str> = Vec::new();
        for part in folder.split('/').chain(path.split('/')) {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        parts.join("/")
    }

    /// The text of a file that is named beside others.
    pub(super) fn text(&self, path: &str) -> Result<Arc<str>, Unavailable> {
        self.text_of(&self.resolve(path))
    }

    /// The text of a file, without the byte order mark that some editors put before it.
    pub(super) fn text_of(&self, path: &str) -> Result<Arc<str>, Unavailable> {
        let text = self.surroundings.read(path, None)?;
        Ok(text.strip_prefix('\u{feff}').map_or_else(|| Arc::clone(&text), Arc::from))
    }
}
