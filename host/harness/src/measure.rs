//! How long the call of a case takes, and what of it is the fresh instance.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_budget::Usage;

use crate::case::Case;
use crate::play::{Harness, HarnessError, terms};
use crate::replies::Replies;

/// Calls that are made before measuring.
const WARM_UP: usize = 5;

/// What a number of calls took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Calls that were measured
    pub calls: usize,
    /// Half of the calls took less
    pub median: Duration,
    /// One of a hundred calls took more
    pub slowest_percent: Duration,
    /// What one call uses
    pub usage: Usage,
    /// Loading the component from the cache or compiling it
    pub load: Duration,
    /// Making a fresh instance and dropping it, the median
    pub instance: Duration,
}

impl Harness {
    /// Calls a case many times, for at most `time`.
    ///
    /// # Errors
    /// When the component cannot be loaded.
    pub async fn measure(&self, component: &[u8], case: &Case, time: Duration) -> Result<Measured, HarnessError> {
        let started = Instant::now();
        let cell = self.cells().load("plugin", component)?;
        let load = started.elapsed();
        let mut samples = Vec::new();
        let mut usage = Usage::default();
        let begun = Instant::now();
        let mut call = 0;
        while call < WARM_UP + 10 || begun.elapsed() < time {
            let replies = Arc::new(Replies::new(&case.replies));
            let started = Instant::now();
            let (report, _) = self.call(&cell, case, &replies, false).await?;
            let elapsed = started.elapsed();
            if call >= WARM_UP {
                samples.push(elapsed);
                usage = report.usage;
            }
            call += 1;
        }
        samples.sort();
        let terms = terms(case, &Arc::new(Replies::new(&[])), &cell);
        let mut instances = Vec::with_capacity(samples.len());
        for _ in 0..samples.len().min(1_000) {
            let instance = self.cells().instantiate(&cell, &terms).await;
            instances.push(instance.map_err(|error| HarnessError::Case(error.to_string()))?);
        }
        instances.sort();
        let at = |share: f64| samples[((samples.len() - 1) as f64 * share) as usize];
        Ok(Measured {
            calls: samples.len(),
            median: at(0.5),
            slowest_percent: at(0.99),
            usage,
            load,
            instance: instances[instances.len() / 2],
        })
    }
}
