//! Reading `evolution`: scenarios by which a mesh is scored.

use super::reading::{LONGEST, Reading};
use super::schema::Mesh;
use crate::document::Fields;
use crate::document::Need::Optional;

const MUTATIONS: [&str; 9] = [
    "prompt_variation",
    "temperature_adjustment",
    "tool_selection",
    "agent_connections",
    "communication_patterns",
    "agent_parameters",
    "workflow_sequences",
    "resource_allocation",
    "timeout_settings",
];

/// Nothing of it is part of a run, so nothing of it is refused by one.
pub(super) fn evolution<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) {
    reading.no_effect(fields, "evolution", "nothing changes a mesh by itself");
    let Some(mut of_one) = reading.block(fields, "evolution") else { return };
    of_one.flag("enabled", Optional);
    for name in ["strategy", "fitness_function", "selection_method", "schedule"] {
        of_one.text(name, Optional);
    }
    for name in ["population_size", "generations", "elite_size"] {
        of_one.between(name, 1, u32::MAX);
    }
    for name in ["mutation_rate", "crossover_rate"] {
        of_one.within(name, 0.0..=1.0);
    }
    for mutation in of_one.texts("mutation_types", Optional).unwrap_or_default() {
        if !MUTATIONS.contains(&&*mutation) {
            let error = of_one.unknown_word("mutation_types", &mutation, &MUTATIONS);
            reading.reader.report(error);
        }
    }
    let list = of_one.list("test_scenarios", Optional);
    let mut total = 0.0;
    for item in list.unwrap_or_default() {
        let Some(mut scenario) = reading.fields_of(&of_one, item, "a test scenario".to_owned()) else { continue };
        scenario.text("name", Optional);
        mesh.named_entries.extend(scenario.text("entry_point", Optional));
        scenario.ignore("input");
        scenario.map("expected_outcome", Optional);
        total += scenario.within("weight", 0.0..=LONGEST).unwrap_or(1.0);
        reading.seconds(&mut scenario, "timeout", LONGEST);
        scenario.finish(|_| None);
    }
    if let Some(list) = list.filter(|list| !list.is_empty() && total <= 0.0) {
        let span = reading.reader.span(list[0].place);
        let error =
            of_one.error("the `weight`s of `test_scenarios` add up to 0, so there is nothing to score by", &span);
        reading.reader.report(error.help("give at least one scenario a weight"));
    }
    of_one.finish(|_| None);
}
