//! Looking for better settings of a mesh: choices of them are scored by the mesh's scenarios, and the better ones give new ones.
//!
//! It gives a proposal. No file and no mesh that is served is changed by it.

use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;
use hotcell_dialects::leafmesh::genes::{Gene, KINDS, changed, changes, genes};
use hotcell_dialects::leafmesh::state::{DATA, ENTRY_POINT, OUTPUT, SESSION_ID};
use hotcell_dialects::leafmesh::{Evolution, Scenario, scoring, written};
use hotcell_engine::{Outcome, RunInput};
use hotcell_graph::diagnostic::{SourceFile, render};
use hotcell_graph::{Key, Object as GraphObject, Value as GraphValue};
use serde::Serialize;
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::host::{Host, HostError, Session};

/// How many of a generation a parent is the best of.
const TOURNAMENT: usize = 3;
/// After so many generations in a row without a choice that was not scored before, nothing new is expected any more.
const MOST_STALE: u32 = 100;

/// How settings are looked for, beside what the mesh says.
#[derive(Clone, Debug)]
pub struct EvolveSettings {
    /// What chance begins with: the same number makes the same choices
    pub seed: u64,
    /// How many choices of settings are scored at most
    pub evaluations: usize,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Evolved {
    /// The mesh
    pub mesh: String,
    /// What chance began with
    pub seed: u64,
    /// How well the mesh does as it is
    pub fitness_before: f64,
    /// How well it does with the proposal
    pub fitness: f64,
    /// How many choices were scored
    pub evaluated: usize,
    /// How many generations there were
    pub generations: u32,
    /// The proposal: for each agent the fields that are to change, as `PATCH /api/yaml/agents/NAME` takes them
    pub agents: Map<String, Value>,
}

/// A generation that was scored.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// Its number, from 1
    pub number: u32,
    /// The best score so far
    pub best: f64,
    /// How many choices were scored so far
    pub evaluated: usize,
}

/// Why settings cannot be looked for.
#[derive(Debug, Error)]
pub enum EvolveError {
    /// It is not a mesh
    #[error("`{0}` is not a mesh")]
    NoMesh(String),
    /// It has no scenarios
    #[error("the mesh has no scenarios: `evolution.enabled` has to be true, with `test_scenarios`")]
    NoScenarios,
    /// It says how it is to be looked for, and hotcell does not do that
    #[error("hotcell does not look for settings by {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// Nothing of it can be varied
    #[error(
        "nothing of the mesh can be varied: its `mutation_types` are about prompts, temperatures and tools of agents with models, and it has none"
    )]
    NothingToVary,
    /// Its file cannot be read
    #[error("the mesh cannot be read: {0}")]
    Unread(String),
    /// Runs cannot be made
    #[error(transparent)]
    Host(#[from] HostError),
    /// Somebody stopped it
    #[error("it was stopped")]
    Stopped,
}

impl Host {
    /// Looks for better settings of a mesh. Each choice of settings is scored by running all scenarios, so this asks models often.
    ///
    /// # Errors
    /// When there is nothing to score by or to vary, and when runs cannot be made at all.
    pub async fn evolve(
        &self,
        agent: &Agent,
        settings: &EvolveSettings,
        cancel: &CancellationToken,
        on_generation: &mut dyn FnMut(Generation),
    ) -> Result<Evolved, EvolveError> {
        let mesh = agent.mesh().ok_or_else(|| EvolveError::NoMesh(agent.file.display().to_string()))?;
        if mesh.scenarios.is_empty() {
            return Err(EvolveError::NoScenarios);
        }
        let evolution = &mesh.evolution;
        let mut unknown = evolution.unknown.clone();
        let not_varied = evolution.mutations.iter().filter(|kind| !KINDS.contains(&kind.as_str()));
        unknown.extend(not_varied.map(|kind| format!("`mutation_types: {kind}`")));
        if !unknown.is_empty() {
            return Err(EvolveError::Unknown(unknown));
        }
        let text = self.text_of(agent).map_err(|failure| EvolveError::Unread(render(&failure.diagnostics, false)))?;
        let file = SourceFile { name: agent.file.display().to_string(), text };
        let config = written(&file.into()).map_err(|diagnostics| EvolveError::Unread(render(&diagnostics, false)))?;
        let config = Value::from(&config);
        let genes = genes(&config, &evolution.mutations);
        if genes.is_empty() {
            return Err(EvolveError::NothingToVary);
        }
        let possible = genes.iter().fold(1_usize, |all, gene| all.saturating_mul(gene.values.len()));
        let as_it_is = vec![0; genes.len()];
        let mut search = Search {
            host: self,
            agent,
            scenarios: &mesh.scenarios,
            config: &config,
            genes: &genes,
            scored: HashMap::new(),
            best: (0.0, as_it_is.clone()),
            most: settings.evaluations.clamp(1, possible),
            cancel,
        };
        let mut rng = Rng::with_seed(settings.seed);
        let generations = search.run(evolution, &mut rng, on_generation).await?;
        // The first that is scored is the mesh as it is: only what is better is worth a change.
        let before = search.fitness(&as_it_is);
        let (fitness, best) = search.best;
        Ok(Evolved {
            mesh: mesh.name.clone(),
            seed: settings.seed,
            fitness_before: before,
            fitness,
            evaluated: search.scored.len(),
            generations,
            agents: changes(&genes, &best),
        })
    }
}

/// A choice: for each setting which of its values.
type Choice = Vec<usize>;

struct Search<'a> {
    host: &'a Host,
    agent: &'a Agent,
    scenarios: &'a [Scenario],
    config: &'a Value,
    genes: &'a [Gene],
    /// How well choices do that were looked at
    scored: HashMap<Choice, f64>,
    /// The best of them, and how well it does
    best: (f64, Choice),
    most: usize,
    cancel: &'a CancellationToken,
}

impl Search<'_> {
    fn fitness(&self, choice: &Choice) -> f64 {
        self.scored.get(choice).copied().unwrap_or(0.0)
    }

    /// Looks at one generation after the other, and gives how many there were.
    async fn run(
        &mut self,
        evolution: &Evolution,
        rng: &mut Rng,
        on_generation: &mut dyn FnMut(Generation),
    ) -> Result<u32, EvolveError> {
        // A generation of more choices than are scored says no more.
        let size = (evolution.population as usize).clamp(2, self.most.max(2));
        let mut population: Vec<Choice> = vec![vec![0; self.genes.len()]];
        while population.len() < size {
            let mut choice = vec![0; self.genes.len()];
            self.mutate(&mut choice, 1.0 / self.genes.len() as f64 + evolution.mutation_rate, rng);
            population.push(choice);
        }
        let (mut done, mut stale) = (0, 0);
        for number in 1..=evolution.generations {
            if self.cancel.is_cancelled() {
                return Err(EvolveError::Stopped);
            }
            let known = self.scored.len();
            for choice in &population {
                self.score(choice).await?;
            }
            stale = if self.scored.len() > known { 0 } else { stale + 1 };
            population.sort_by(|left, right| self.fitness(right).total_cmp(&self.fitness(left)));
            done = number;
            on_generation(Generation { number, best: self.best.0, evaluated: self.scored.len() });
            if number == evolution.generations || self.scored.len() >= self.most || stale >= MOST_STALE {
                break;
            }
            let mut next: Vec<Choice> = population.iter().take((evolution.elite as usize).min(size)).cloned().collect();
            while next.len() < size {
                let mut child = self.parent(&population, rng).clone();
                if rng.f64() < evolution.crossover_rate {
                    let other = self.parent(&population, rng);
                    child.iter_mut().zip(other).filter(|_| rng.bool()).for_each(|(own, other)| *own = *other);
                }
                self.mutate(&mut child, evolution.mutation_rate, rng);
                next.push(child);
            }
            population = next;
        }
        Ok(done)
    }

    /// The best of a few.
    fn parent<'p>(&self, population: &'p [Choice], rng: &mut Rng) -> &'p Choice {
        let few = (0..TOURNAMENT).map(|_| &population[rng.usize(..population.len())]);
        few.max_by(|left, right| self.fitness(left).total_cmp(&self.fitness(right))).unwrap_or(&population[0])
    }

    fn mutate(&self, choice: &mut Choice, rate: f64, rng: &mut Rng) {
        for (chosen, gene) in choice.iter_mut().zip(self.genes) {
            if rng.f64() < rate {
                *chosen = rng.usize(..gene.values.len());
            }
        }
    }

    /// Scores a choice that was not looked at yet. One with which the mesh would not load does nothing well.
    async fn score(&mut self, choice: &Choice) -> Result<(), EvolveError> {
        if self.scored.contains_key(choice) || self.scored.len() >= self.most {
            return Ok(());
        }
        let text = changed(self.config, &changes(self.genes, choice)).to_string();
        let fitness = match self.host.load_text_async(self.agent, text).await {
            Err(_) => 0.0,
            Ok(agent) => {
                let mut scores = Vec::new();
                for scenario in self.scenarios {
                    scores.push((scenario.weight, self.play(&agent, scenario).await?));
                }
                scoring::fitness(scores).unwrap_or(0.0)
            }
        };
        self.scored.insert(choice.clone(), fitness);
        if fitness > self.best.0 {
            self.best = (fitness, choice.clone());
        }
        Ok(())
    }

    /// Runs a scenario: its score. One that waits for a person does not come to an end.
    async fn play(&self, agent: &Agent, scenario: &Scenario) -> Result<f64, EvolveError> {
        let data = match &scenario.input {
            GraphValue::Object(_) => scenario.input.clone(),
            text => GraphValue::from(&json!({ "message": Value::from(text) })),
        };
        let session: u128 = rand_session();
        let state = [
            (ENTRY_POINT, GraphValue::from(scenario.entry_point.as_str())),
            (DATA, data),
            (SESSION_ID, GraphValue::from(format!("{session:032x}"))),
        ];
        let state: GraphObject = state.into_iter().map(|(name, value)| (Key::from(name), value)).collect();
        let session = Session { cancel: self.cancel.child_token(), ..Session::unattended() };
        let stop = session.cancel.clone();
        let clock = self.host.clock().clone();
        let began = clock.elapsed();
        let run = self.host.run(agent, RunInput { state, ..RunInput::default() }, session);
        let report = tokio::select! {
            biased;
            report = run => report?,
            () = clock.sleep(scenario.timeout) => {
                stop.cancel();
                return Ok(0.0);
            }
        };
        if self.cancel.is_cancelled() {
            return Err(EvolveError::Stopped);
        }
        let took: Duration = clock.elapsed().saturating_sub(began);
        let Outcome::Completed { output } = &report.outcome else { return Ok(0.0) };
        let expected = Value::from(&GraphValue::Object(scenario.expected.clone()));
        let output: Option<Value> =
            serde_json::from_str::<Value>(output).ok().and_then(|result| result.get(OUTPUT).cloned());
        Ok(scoring::score(&expected, output.as_ref(), took, scenario.timeout))
    }
}

/// A name for a session, which no chance that begins with a seed decides.
fn rand_session() -> u128 {
    fastrand::u128(..)
}
