//! Sealed calls of many different plugins in turn: what a call costs by the number of plugins that take turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_cells::{Cell, Cells, CellsOptions};
use serde_json::json;

use super::Failure;
use super::scripts::TEXT;
use super::tools::{TOOL, check, described, timed_call, tool_description};
use crate::measure::{Row, Samples};

/// How many different plugins take turns.
const PLUGINS: [usize; 5] = [1, 10, 50, 100, 1_000];
/// How many tasks call them at the same time.
const TASKS: [usize; 2] = [1, 16];
/// Calls of all tasks together in one round.
const CALLS: usize = 8_000;

/// Calls `n` plugins one after the other and from the beginning again, by one task and by many.
///
/// Compiling a thousand plugins takes a minute, so what was compiled is kept in the system's folder for temporary
/// files: only the first time takes so long.
pub(crate) async fn plugins(rounds: usize) -> Result<Vec<Row>, Failure> {
    let options = CellsOptions {
        cache_dir: Some(std::env::temp_dir().join("hotcell-bench-many-plugins")),
        ..CellsOptions::default()
    };
    let cells = Cells::new(options)?;
    let most = PLUGINS.into_iter().max().unwrap_or_default();
    let mut all = Vec::with_capacity(most);
    for number in 0..most {
        let name = format!("plugin-{number}");
        all.push(cells.load(&name, &described(TOOL, &tool_description(&name)))?);
    }
    let all: Arc<[Cell]> = all.into();
    let mut measured: Vec<Measured> = PLUGINS
        .into_iter()
        .flat_map(|plugins| TASKS.into_iter().map(move |tasks| Measured::new(plugins, tasks)))
        .collect();
    for round in 0..=rounds.min(10) {
        for one in &mut measured {
            // The first round only warms up.
            one.round(&cells, &all, round > 0).await?;
        }
    }
    let first: Vec<Duration> = measured.iter().take(TASKS.len()).map(Measured::each).collect();
    Ok(measured.iter().zip(first.iter().cycle()).map(|(one, first)| one.row(*first)).collect())
}

/// Calls of so many plugins by so many tasks.
struct Measured {
    plugins: usize,
    tasks: usize,
    times: Samples,
    /// Time and number of all calls
    total: (Duration, usize),
}

impl Measured {
    fn new(plugins: usize, tasks: usize) -> Self {
        let label = match (plugins, tasks) {
            (1, 1) => "1 plugin, 1 task".to_owned(),
            (1, tasks) => format!("1 plugin, {tasks} tasks"),
            (plugins, 1) => format!("{plugins} plugins, 1 task"),
            (plugins, tasks) => format!("{plugins} plugins, {tasks} tasks"),
        };
        Self { plugins, tasks, times: Samples::new(label), total: (Duration::ZERO, 0) }
    }

    async fn round(&mut self, cells: &Cells, all: &Arc<[Cell]>, counts: bool) -> Result<(), Failure> {
        let (plugins, each) = (self.plugins, CALLS / self.tasks);
        let begun = Instant::now();
        let running: Vec<_> = (0..self.tasks)
            .map(|task| {
                let (cells, all) = (cells.clone(), all.clone());
                // The tasks begin at different plugins, as they would after a while.
                let start = task * plugins / self.tasks;
                tokio::spawn(async move {
                    let arguments = json!({ "text": TEXT }).to_string();
                    let (mut times, mut expected) = (Vec::with_capacity(each), None);
                    for cell in all.iter().take(plugins).cycle().skip(start).take(each) {
                        let (time, answer) = timed_call(&cells, cell, &arguments).await?;
                        times.push(time);
                        // Reading an answer takes time that does not belong to calls: all are alike, one is read.
                        match &expected {
                            None => check(&answer)?,
                            Some(expected) if *expected == answer => continue,
                            Some(_) => return Err(format!("`{}` answered {answer}", cell.name()).into()),
                        }
                        expected = Some(answer);
                    }
                    Ok::<_, Failure>(times)
                })
            })
            .collect();
        let mut times = Vec::with_capacity(CALLS);
        for task in running {
            times.extend(task.await??);
        }
        if counts {
            self.total = (self.total.0 + begun.elapsed(), self.total.1 + times.len());
            times.into_iter().for_each(|time| self.times.add(time));
        }
        Ok(())
    }

    /// Time by which every call advanced the whole.
    fn each(&self) -> Duration {
        self.total.0.div_f64(self.total.1.max(1) as f64)
    }

    fn row(&self, one_plugin: Duration) -> Row {
        let mut row = Row::time(&self.times);
        row.ratio = Some(("calls a second".to_owned(), 1.0 / self.each().as_secs_f64().max(1e-9)));
        let ratio = self.each().as_secs_f64() / one_plugin.as_secs_f64().max(1e-9);
        row.target = Some((format!("<= 1.5 times one plugin, is {ratio:.2}"), ratio <= 1.5));
        row
    }
}
