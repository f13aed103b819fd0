//! What a sealed call gets in a run that was forked to see what would have been: everything that it was granted but ways to act on the
//! world outside. A call that would have taken one of them is told to its run, which goes no further there.

use std::sync::Arc;

use hotcell_cells::{Access, Capability, Denial, Grants, Terms};
use hotcell_engine::{CallSite, Outward};

/// Takes from the terms of a call what its run may not do.
pub(crate) fn withhold(terms: &mut Terms, site: &CallSite) {
    let mut left = Grants::clone(&terms.grants);
    if !site.may(Outward::Http) {
        left.http.clear();
    }
    if !site.may(Outward::Models) {
        left.llm = false;
    }
    if !site.may(Outward::Tools) {
        left.process = false;
    }
    if !site.may(Outward::Stores) {
        left.kv = false;
        // A guest sees no denial where a directory is not there, only that it is not.
        for directory in left.fs.extract_if(.., |directory| directory.access == Access::ReadWrite) {
            site.withhold(format_args!("a call of `{}`, which may write into `{}`", terms.plugin, directory.guest));
        }
    }
    if left != *terms.grants {
        if !left.kv {
            terms.kv = None;
        }
        // Marks denials of what would have been granted.
        terms.held_back = std::mem::replace(&mut terms.grants, Arc::new(left));
    }
}

/// Tells the run of what a call asked for that was withheld.
pub(crate) fn tell(denials: &[Denial], site: &CallSite) {
    for Denial { plugin, capability, held_back, .. } in denials {
        if *held_back && outward(capability).is_some_and(|outward| !site.may(outward)) {
            site.withhold(format_args!("`{plugin}`: {capability}"));
        }
    }
}

/// The way to act on the world outside that a capability is.
fn outward(capability: &Capability) -> Option<Outward> {
    match capability {
        Capability::Http { .. } | Capability::Secret { .. } => Some(Outward::Http),
        Capability::Model => Some(Outward::Models),
        Capability::Process => Some(Outward::Tools),
        Capability::KeyValue | Capability::Directory { .. } => Some(Outward::Stores),
        Capability::Socket
        | Capability::Variable { .. }
        | Capability::PreciseClock
        | Capability::FreshRandom
        | Capability::Tool { .. }
        | Capability::Ask => None,
    }
}
