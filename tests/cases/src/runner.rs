//! Runs cases side by side, each so that nothing it does can hurt another: a thread of its own, a time limit, and a
//! panic that is its own failure.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::agent_spec;
use crate::agentloom;
use crate::case_file::CaseFile;
use crate::check::check;
use crate::discover::{Content, Found, Selection};
use crate::disputed::{self, Disputed};
use crate::loki;
use crate::mesh;
use crate::mismatch::Mismatch;
use crate::observed::Observed;
use crate::sherma;
use crate::stage::Stage;
use crate::world::World;

/// What a case that does not even give control back is allowed beyond its limit, for loading and cleaning up.
const GRACE: Duration = Duration::from_secs(60);

/// What became of a case.
#[derive(Debug)]
pub struct Report {
    /// Its directory
    pub directory: PathBuf,
    /// Its title
    pub title: String,
    /// The verdict
    pub verdict: Verdict,
    /// How long it took
    pub elapsed: Duration,
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is as expected
    Passed,
    /// Something differs
    Differs(Vec<Mismatch>),
    /// The case, or the host under it, broke; a sentence
    Broken(String),
    /// It was not run; the reason
    Skipped(String),
}

/// Runs cases.
#[derive(Debug)]
pub struct Runner {
    /// What all cases share
    pub stage: Stage,
    /// How many cases run at once
    pub jobs: usize,
    /// Which cases are wanted
    pub selection: Selection,
    /// Cases that are not run
    pub disputed: Disputed,
}

/// A case that is going to be run.
struct Job {
    index: usize,
    case: CaseFile,
    directory: PathBuf,
    /// Whether it is a conversation with a server
    is_conversation: bool,
}

impl Runner {
    /// Runs the cases that are wanted and gives a report on each, in the order of `cases`. `finished` is told after
    /// each case how many of those that run are done, and how many there are.
    pub fn run(&self, cases: Vec<Found>, mut finished: impl FnMut(usize, usize)) -> Vec<Report> {
        let mut reports: Vec<Report> = Vec::with_capacity(cases.len());
        let (mut side_by_side, mut alone) = (VecDeque::new(), VecDeque::new());
        for (index, found) in cases.into_iter().enumerate() {
            let (report, job) = self.admit(index, found);
            if let Some(job) = job {
                if job.case.is_timed() { alone.push_back(job) } else { side_by_side.push_back(job) }
            }
            reports.push(report);
        }
        let all = side_by_side.len() + alone.len();
        let mut done = 0;
        let mut take = |index: usize, verdict: Verdict, elapsed: Duration| {
            reports[index].verdict = verdict;
            reports[index].elapsed = elapsed;
            done += 1;
            finished(done, all);
        };
        self.play_all(side_by_side, self.jobs.max(1), &mut take);
        self.play_all(alone, 1, &mut take);
        reports
    }

    /// Decides whether a case runs. The verdict of one that does is filled in later.
    fn admit(&self, index: usize, found: Found) -> (Report, Option<Job>) {
        let Found { directory, label, case } = found;
        let report = |verdict| Report {
            directory: directory.clone(),
            title: label.title.clone(),
            verdict,
            elapsed: Duration::ZERO,
        };
        let skipped = |reason: String| (report(Verdict::Skipped(reason)), None);
        if let Some(reason) = self.selection.refusal(&label) {
            return skipped(reason);
        }
        if self.disputed.contains(&directory) {
            return skipped(disputed::REASON.to_owned());
        }
        let unsupported = format!("dialect not supported yet: `{}`", label.dialect);
        match case {
            Content::Bad(error) => (report(Verdict::Broken(error.to_string())), None),
            Content::Foreign => skipped(unsupported),
            Content::Steps(case) => {
                let report = report(Verdict::Broken("it was not run".to_owned()));
                (report, Some(Job { index, case: *case, directory: directory.clone(), is_conversation: true }))
            }
            Content::Case(case)
                if !matches!(&*case.dialect, "loki" | "sherma" | "agent-spec" | "agentloom" | "leafmesh") =>
            {
                skipped(unsupported)
            }
            Content::Case(case) => {
                let report = report(Verdict::Broken("it was not run".to_owned()));
                (report, Some(Job { index, case: *case, directory: directory.clone(), is_conversation: false }))
            }
        }
    }

    fn play_all(&self, mut waiting: VecDeque<Job>, jobs: usize, take: &mut impl FnMut(usize, Verdict, Duration)) {
        let stage = Arc::new(self.stage.clone());
        let limit = self.stage.limit + GRACE;
        let (sender, receiver) = mpsc::channel();
        let mut running: Vec<(usize, Instant)> = Vec::new();
        loop {
            while running.len() < jobs
                && let Some(job) = waiting.pop_front()
            {
                running.push((job.index, Instant::now()));
                let (sender, stage) = (sender.clone(), Arc::clone(&stage));
                let case = move || {
                    let index = job.index;
                    let verdict = guarded(|| verdict(&job, &stage));
                    // Nobody listens any more once the case was given up.
                    let _ = sender.send((index, verdict));
                };
                if let Err(error) = thread::Builder::new().name("case".to_owned()).spawn(case) {
                    let (index, _) = running.remove(running.len() - 1);
                    take(index, Verdict::Broken(format!("no thread could be started: {error}")), Duration::ZERO);
                }
            }
            let Some(oldest) = running.iter().map(|(_, begun)| *begun).min() else { return };
            match receiver.recv_timeout(limit.saturating_sub(oldest.elapsed())) {
                Ok((index, verdict)) => {
                    if let Some(position) = running.iter().position(|(running, _)| *running == index) {
                        let (_, begun) = running.remove(position);
                        take(index, verdict, begun.elapsed());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    running.retain(|(index, begun)| {
                        let in_time = begun.elapsed() < limit;
                        if !in_time {
                            let verdict = format!("it gave no sign of life within {} s", limit.as_secs());
                            take(*index, Verdict::Broken(verdict), begun.elapsed());
                        }
                        in_time
                    });
                }
                // The sender of this function lives as long as the loop.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

fn verdict(job: &Job, stage: &Stage) -> Verdict {
    if job.case.dialect == "agent-spec" {
        return match agent_spec::play(&job.directory, stage) {
            Err(error) => Verdict::Broken(error.to_string()),
            Ok((case, observed)) => compared(&case, &observed),
        };
    }
    if job.is_conversation {
        return match mesh::play(&job.directory, stage) {
            Err(error) => Verdict::Broken(error.to_string()),
            Ok(mismatches) if mismatches.is_empty() => Verdict::Passed,
            Ok(mismatches) => Verdict::Differs(mismatches),
        };
    }
    let world = match World::build(&job.case, &job.directory) {
        Ok(world) => world,
        Err(error) => return Verdict::Broken(error.to_string()),
    };
    let played = match &*job.case.dialect {
        "sherma" => sherma::play(&job.case, &world, stage),
        "agentloom" => agentloom::play(&job.case, &world, stage),
        "leafmesh" => mesh::load(&job.case, &world, stage),
        _ => loki::play(&job.case, &world, stage),
    };
    match played {
        Err(error) => Verdict::Broken(error.to_string()),
        Ok(observed) => compared(&job.case, &observed),
    }
}

fn compared(case: &CaseFile, observed: &Observed) -> Verdict {
    match check(case, observed) {
        mismatches if mismatches.is_empty() => Verdict::Passed,
        mismatches => Verdict::Differs(mismatches),
    }
}

/// A verdict, also if there is a panic on the way to it. Nothing that the panic could have left half done is looked at
/// afterwards.
fn guarded(play: impl FnOnce() -> Verdict) -> Verdict {
    catch_unwind(AssertUnwindSafe(play))
        .unwrap_or_else(|panic| Verdict::Broken(format!("it panicked: {}", panic_text(&*panic))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Verdict, guarded};

    #[test]
    fn a_panic_is_the_failure_of_its_case() {
        let index = std::hint::black_box(7);
        let verdict = guarded(|| if [0; 3][index] == 0 { Verdict::Passed } else { Verdict::Skipped(String::new()) });
        let Verdict::Broken(problem) = verdict else { panic!("{verdict:?}") };
        assert!(problem.starts_with("it panicked: index out of bounds"), "{problem}");
        assert_eq!(guarded(|| Verdict::Passed), Verdict::Passed);
    }
}
