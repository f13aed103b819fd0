//! Reading what an agent remembers.

use super::reading::Reading;
use super::schema::Memory;
use crate::document::Need::Optional;
use crate::document::{Fields, Kind};

/// How many posts are remembered where nothing is said, and how many of other sessions.
const MOST: u32 = 10;
const OF_OTHERS: u32 = 50;
/// How much it counts that a post fits and that it is new, where both count.
const RELEVANCE: f64 = 0.6;
const RECENCY: f64 = 0.4;
/// After how many hours a post counts as old.
const DECAY_HOURS: u32 = 24;

pub(super) fn memory<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<Memory> {
    let most = fields.between("memory_limit", 1, 100).unwrap_or(MOST);
    let entry = fields.entry("memory", Optional)?;
    let usual = Memory {
        most: most as usize,
        recency: 1.0,
        relevance: 0.0,
        decay_hours: f64::from(DECAY_HOURS),
        of_others: None,
    };
    let memory = match &entry.value.kind {
        Kind::Map(_) => {
            let mut of_one = reading.block(fields, "memory")?;
            let strategy = of_one.word("strategy", &["recency", "relevance", "hybrid"]);
            let limit = of_one.between("limit", 1, 100);
            let others = of_one.flag("cross_session", Optional).is_some_and(|flag| flag.value);
            let most_of_others = of_one.between("cross_session_limit", 1, 500);
            let relevance = of_one.within("relevance_weight", 0.0..=1.0);
            let recency = of_one.within("recency_weight", 0.0..=1.0);
            if relevance == Some(0.0) && recency == Some(0.0) {
                let message =
                    "`relevance_weight` and `recency_weight` are both 0, so nothing is remembered before anything else";
                let error = of_one.error(message, &reading.reader.span(entry.value.place));
                reading.reader.report(error.help("give one of them a weight"));
            }
            let decay = of_one.between("decay_hours", 1, u32::MAX);
            let hybrid = "only `strategy: hybrid` weighs how new a post is against how well it fits";
            let experience = of_one.flag("experience", Optional).is_some_and(|flag| flag.value);
            for (name, is_idle, why) in [
                ("relevance_weight", relevance.is_some() && strategy != Some("hybrid"), hybrid),
                ("recency_weight", recency.is_some() && strategy != Some("hybrid"), hybrid),
                ("decay_hours", decay.is_some() && strategy != Some("hybrid"), hybrid),
                ("cross_session_limit", most_of_others.is_some() && !others, "`cross_session` is off"),
                ("experience", experience, "posts are remembered, and nothing else"),
            ] {
                if is_idle {
                    reading.no_effect(&mut of_one, name, why);
                }
            }
            of_one.finish(|_| None);
            if limit.is_some() {
                reading.no_effect(fields, "memory_limit", "`limit` of `memory` counts");
            }
            let (recency, relevance) = match strategy {
                Some("relevance") => (0.0, 1.0),
                Some("hybrid") => (recency.unwrap_or(RECENCY), relevance.unwrap_or(RELEVANCE)),
                _ => (1.0, 0.0),
            };
            Memory {
                most: limit.unwrap_or(most) as usize,
                recency,
                relevance,
                decay_hours: f64::from(decay.unwrap_or(DECAY_HOURS)),
                of_others: others.then_some(most_of_others.unwrap_or(OF_OTHERS) as usize),
            }
        }
        _ if fields.flag("memory", Optional).is_some_and(|flag| flag.value) => usual,
        _ => return None,
    };
    if !reading.has_manager {
        reading.no_effect(fields, "memory", "no `manager` is enabled, so there are no posts to remember");
    }
    Some(memory)
}
