//! Where in a run a call is made, for whoever makes it and records what it took from outside.

use std::fmt;
use std::sync::Arc;

use hotcell_budget::Usage;
use hotcell_graph::Value;
use hotcell_journal::{EntryPath, RecordedCall, RunId, RunWriter};

use crate::event::{Event, Observer};
use crate::permit::{Denials, Denied, Permit};
use crate::what_if::{Notes, Outward, WhatIf, locked};

/// Where in a run a call is made.
#[derive(Clone, Default)]
pub struct CallSite(Option<Site>);

#[derive(Clone)]
struct Site {
    writer: Arc<dyn RunWriter>,
    place: EntryPath,
    observer: Arc<dyn Observer>,
    /// None if the run may do everything
    what_if: Option<Arc<WhatIf>>,
    /// What was withheld from this call
    notes: Notes,
    /// What was granted to this call while its run waited, and what it is denied; none where nobody is asked for that
    denials: Option<Arc<Denials>>,
    /// How many calls of plugins it is within
    within: u32,
}

impl CallSite {
    /// A call that no run makes. Nothing of it is kept.
    pub fn outside() -> Self {
        CallSite(None)
    }

    pub(crate) fn new(
        writer: Arc<dyn RunWriter>,
        place: EntryPath,
        observer: Arc<dyn Observer>,
        what_if: Option<Arc<WhatIf>>,
        notes: Notes,
    ) -> Self {
        CallSite(Some(Site { writer, place, observer, what_if, notes, denials: None, within: 0 }))
    }

    /// The same for a call that is made again when it is granted what it was denied. `refused` is what was refused before.
    pub(crate) fn asking(mut self, permits: Vec<Permit>, refused: Vec<Value>) -> Self {
        if let Some(site) = &mut self.0 {
            site.denials = Some(Arc::new(Denials::new(permits, refused)));
        }
        self
    }

    /// The same for what is called within so many calls of plugins, which wait for it.
    #[must_use]
    pub fn nested(mut self, within: u32) -> Self {
        if let Some(site) = &mut self.0 {
            site.within = within;
        }
        self
    }

    /// How many calls of plugins it is within.
    pub fn within(&self) -> u32 {
        self.0.as_ref().map_or(0, |site| site.within)
    }

    /// Where in the run it is, as text; empty for the run itself and outside of runs.
    pub(crate) fn place(&self) -> &str {
        self.0.as_ref().map_or("", |site| site.place.as_str())
    }

    /// Tells whoever watches the run that a call of the script or plugin `name` is over, what it used and what it asked for
    /// and was `denied`.
    pub fn tell_called(&self, name: &str, failed: bool, usage: &Usage, denied: &[&'static str]) {
        if let Some(Site { place, observer, .. }) = &self.0 {
            observer.event(&Event::CellCalled { name, place: place.as_str(), failed, usage, denied });
        }
    }

    /// The run that makes it.
    pub fn run(&self) -> Option<&RunId> {
        self.0.as_ref().map(|site| site.writer.run())
    }

    /// Whether a recording of the call is kept.
    pub fn keeps_recordings(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps the recording of the call, whose `name` is that of a script or plugin. It is committed with the next entries of
    /// the run.
    pub fn record(&self, name: &str, body: Vec<u8>) {
        if let Some(Site { writer, place, .. }) = &self.0 {
            writer.record(RecordedCall { place: place.clone(), name: name.to_owned(), body });
        }
    }

    /// Whether the call may act on the world outside in this way. A run that was forked may do so as far as that was allowed, and
    /// every other one may.
    pub fn may(&self, outward: Outward) -> bool {
        let what_if = self.0.as_ref().and_then(|site| site.what_if.as_ref());
        what_if.is_none_or(|what_if| what_if.origin.allowed.contains(&outward))
    }

    /// Takes note that the call would have done this and was not let. What it gives counts for nothing then.
    pub fn withhold(&self, effect: impl fmt::Display) {
        if let Some(site) = &self.0 {
            locked(&site.notes).push(effect.to_string());
        }
    }

    /// The model that is asked in the place of every other one, in a run that was forked so.
    pub fn model(&self) -> Option<&str> {
        self.0.as_ref()?.what_if.as_ref()?.origin.model.as_deref()
    }

    /// Whether what the call is denied is asked for.
    pub fn asks_denials(&self) -> bool {
        self.told_denials().is_some()
    }

    /// What was granted to it when it, or a call before it, was denied something.
    pub fn permits(&self) -> &[Permit] {
        self.told_denials().map_or(&[], |denials| denials.permits.as_slice())
    }

    /// Tells that the call, or one that it made, was denied something that can be granted.
    pub fn deny(&self, denied: Denied) {
        if let Some(denials) = self.told_denials() {
            denials.deny(denied);
        }
    }

    /// Tells that the call did something outside that would be done twice if it were made again: nothing is asked for it.
    pub fn acted(&self) {
        if let Some(denials) = self.told_denials() {
            denials.acted();
        }
    }

    /// Where it is found what the call was denied; none where nobody is asked for that.
    pub(crate) fn denials(&self) -> Option<Arc<Denials>> {
        self.told_denials().cloned()
    }

    fn told_denials(&self) -> Option<&Arc<Denials>> {
        self.0.as_ref()?.denials.as_ref()
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallSite").field(&self.0.as_ref().map(|site| &site.place)).finish()
    }
}
