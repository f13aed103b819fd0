//! Reading `evolution`: scenarios by which a mesh is scored.

use std::time::Duration;

use super::reading::{LONGEST, Reading};
use super::schema::Mesh;
use super::watching::{Evolution, Scenario};
use crate::document::Need::Optional;
use crate::document::{Fields, SourceText};

/// What a scenario has that does not say it.
const ENTRY_POINT: &str = "test";
const INPUT: &str = "Test scenario input";
const TIMEOUT: Duration = Duration::from_secs(30);
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
    let is_enabled = of_one.flag("enabled", Optional).is_some_and(|flag| flag.value);
    let mut evolution = Evolution::default();
    for (name, only) in
        [("strategy", "genetic"), ("fitness_function", "task_completion_rate"), ("selection_method", "tournament")]
    {
        let other = of_one.text(name, Optional).filter(|text| **text != *only);
        evolution.unknown.extend(other.map(|other| format!("`{name}: {}`", &*other)));
    }
    of_one.text("schedule", Optional);
    let mut count = |name, usual| of_one.between(name, 1, u32::MAX).unwrap_or(usual);
    evolution.population = count("population_size", evolution.population);
    evolution.generations = count("generations", evolution.generations);
    evolution.elite = count("elite_size", evolution.elite);
    evolution.mutation_rate = of_one.within("mutation_rate", 0.0..=1.0).unwrap_or(evolution.mutation_rate);
    evolution.crossover_rate = of_one.within("crossover_rate", 0.0..=1.0).unwrap_or(evolution.crossover_rate);
    if let Some(mutations) = of_one.texts("mutation_types", Optional) {
        evolution.mutations.clear();
        for mutation in mutations {
            match MUTATIONS.contains(&&*mutation) {
                true => evolution.mutations.push(mutation.to_string()),
                false => {
                    let error = of_one.unknown_word("mutation_types", &mutation, &MUTATIONS);
                    reading.reader.report(error);
                }
            }
        }
    }
    mesh.evolution = evolution;
    let list = of_one.list("test_scenarios", Optional);
    let mut total = 0.0;
    for (place, item) in list.unwrap_or_default().iter().enumerate() {
        let Some(mut scenario) = reading.fields_of(&of_one, item, "a test scenario".to_owned()) else { continue };
        let name = scenario.text("name", Optional).map(|name| name.to_string());
        let entry_point = scenario.text("entry_point", Optional);
        if entry_point.is_none() && is_enabled {
            mesh.usual_entries.push(SourceText::implied(ENTRY_POINT, reading.reader.span(item.place)));
        }
        let input = scenario.node("input", Optional).map(|node| node.to_value());
        let (expected, _) = scenario.map("expected_outcome", Optional).unwrap_or_default();
        let weight = scenario.within("weight", 0.0..=LONGEST).unwrap_or(1.0);
        total += weight;
        let timeout = reading.seconds(&mut scenario, "timeout", LONGEST).unwrap_or(TIMEOUT);
        scenario.finish(|_| None);
        mesh.scenarios.push(Scenario {
            name: name.unwrap_or_else(|| format!("scenario_{}", place + 1)),
            entry_point: entry_point.as_ref().map_or_else(|| ENTRY_POINT.to_owned(), |name| name.to_string()),
            input: input.unwrap_or_else(|| INPUT.into()),
            expected: expected.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect(),
            weight,
            timeout,
        });
        mesh.named_entries.extend(entry_point);
    }
    if !is_enabled {
        mesh.scenarios.clear();
    }
    if let Some(list) = list.filter(|list| !list.is_empty() && total <= 0.0) {
        let span = reading.reader.span(list[0].place);
        let error =
            of_one.error("the `weight`s of `test_scenarios` add up to 0, so there is nothing to score by", &span);
        reading.reader.report(error.help("give at least one scenario a weight"));
    }
    of_one.finish(|_| None);
}
