//! What a tenant may use: runs a minute, bytes that are kept, requests a second, and what its runs use in a month.

mod ledger;
mod month;
mod pace;
mod stored;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use hotcell_budget::{Cost, Fuel, Usage};
use hotcell_runtime::{Host, JournalError, RunId, RunStore};
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use tokio::sync::RwLock;
use utoipa::ToSchema;

pub(crate) use self::ledger::Spent;
pub(crate) use self::month::Month;
use self::pace::Pace;
use self::stored::Stored;
use crate::access::rate::Rate;
use crate::problem::Problem;
use crate::store::{Store, StoreError};

/// Runs that are looked at together.
const PAGE: usize = 500;

/// What a tenant may use. What is not set has no limit.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    /// How many requests a second all its keys together may make, and twice as many at once
    pub requests_per_second: Option<u32>,
    /// How many runs it may begin in any minute
    pub runs_per_minute: Option<u32>,
    /// How many bytes the files in its folder may have, and that folder
    pub stored: Option<(u64, PathBuf)>,
    /// What its runs may use in a calendar month (UTC)
    pub month: MonthBudget,
}

/// What runs may use in a calendar month. What is not set has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonthBudget {
    /// Money, for requests to models
    pub cost: Option<Cost>,
    /// Tokens that models read and wrote
    pub tokens: Option<u64>,
    /// Fuel of cells
    pub fuel: Option<Fuel>,
}

impl MonthBudget {
    /// Whether anything is limited.
    pub(crate) fn is_set(&self) -> bool {
        *self != MonthBudget::default()
    }
}

/// What was used in a month, and what may be.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Month)]
pub(crate) struct MonthView {
    /// The month in UTC, as `2026-11`
    month: String,
    /// What was used
    used: Amounts,
    /// What may be used; what is null has no limit
    limits: Amounts,
    /// When it begins anew
    #[schema(format = DateTime)]
    resets_at: String,
}

/// What runs use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Amounts {
    /// Money in US dollars, for requests to models
    usd: Option<f64>,
    /// Tokens that models read and wrote
    tokens: Option<u64>,
    /// Fuel of cells
    fuel: Option<u64>,
}

/// Keeps what a tenant uses within its quota.
pub(crate) struct Quotas {
    quota: Quota,
    requests: Option<Rate>,
    runs: Option<Pace>,
    stored: Stored,
    store: Store,
    /// Shared by those who count what a run has used, and taken alone to forget how much of runs was counted
    counting: RwLock<()>,
}

impl Quotas {
    pub(crate) fn new(quota: Quota, store: Store) -> Self {
        let requests = quota.requests_per_second.map(Rate::per_second);
        let runs = quota.runs_per_minute.map(Pace::per_minute);
        Quotas { quota, requests, runs, stored: Stored::default(), store, counting: RwLock::default() }
    }

    pub(crate) fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Whether what runs use is counted.
    pub(crate) fn counts(&self) -> bool {
        self.quota.month.is_set()
    }

    /// Counts a request of whoever has a key of the tenant.
    pub(crate) fn request(&self) -> Result<(), Problem> {
        let Some(requests) = &self.requests else { return Ok(()) };
        requests.take("", Instant::now()).map_err(|wait| {
            let detail = "too many requests of all keys of this tenant";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with("retry_after", wait.as_secs() + 1)
        })
    }

    /// Whether something more may be kept.
    pub(crate) fn keep(&self) -> Result<(), Problem> {
        let Some((limit, folder)) = &self.quota.stored else { return Ok(()) };
        let stored = self.stored_in(folder)?;
        if stored < *limit {
            return Ok(());
        }
        let detail = "as much is kept as this tenant may have; remove runs and threads that are not needed any more";
        Err(Problem::new(StatusCode::INSUFFICIENT_STORAGE, detail)
            .kind("storage-used-up", "As much is kept as may be")
            .with("limit", *limit)
            .with("stored", stored))
    }

    /// Whether a run may begin now, apart from how many begin.
    pub(crate) fn may_begin(&self, now: SystemTime) -> Result<(), Problem> {
        self.keep()?;
        if !self.counts() {
            return Ok(());
        }
        let (month, budget) = (Month::of(now), &self.quota.month);
        let spent = self.store.spent_in(&month)?;
        let Some((what, limit)) = spent.exceeds(budget) else { return Ok(()) };
        let (resets, wait) = month.ends(now);
        let detail = format!("the budget of this month is used up ({what}); it begins anew at {resets}");
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
            .kind("budget-used-up", "The budget of this month is used up")
            .with("budget", what)
            .with("limit", limit)
            .with("used", json!(spent.amounts()))
            .with("resets_at", resets)
            .with("retry_after", wait.as_secs() + 1))
    }

    /// Counts a run that begins.
    pub(crate) fn begin(&self, now: SystemTime) -> Result<(), Problem> {
        self.paced(|runs| runs.take(now))
    }

    /// Whether a run would not be one too many, which is not counted.
    pub(crate) fn has_room(&self, now: SystemTime) -> Result<(), Problem> {
        self.paced(|runs| runs.look(now))
    }

    fn paced(&self, asked: impl FnOnce(&Pace) -> Result<(), Duration>) -> Result<(), Problem> {
        let Some(runs) = &self.runs else { return Ok(()) };
        asked(runs).map_err(|wait| {
            let detail = format!("this tenant may begin {} runs in a minute; nothing was begun", runs.most());
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
                .kind("too-many-runs-a-minute", "Too many runs were begun")
                .with("retry_after", wait.as_secs() + 1)
        })
    }

    /// Counts what a run has used until now: what was counted of it before is not counted again.
    pub(crate) async fn count(&self, host: &Host, run: &RunId) {
        if !self.counts() {
            return;
        }
        // Nobody forgets how much of the run was counted between reading what it has used and counting that.
        let _counting = self.counting.read().await;
        let counted = async {
            let used = Spent::of(&host.used(run).await.map_err(|error| error.to_string())?);
            // What it has of another run was counted with that one.
            let copied = Spent::of(&host.used_for_copied(run).await.map_err(|error| error.to_string())?);
            let month = Month::of(host.clock().now());
            self.store.count(run, &used.beyond(&copied), &month).map_err(|error: StoreError| error.to_string())
        };
        if let Err(reason) = counted.await {
            tracing::error!(target: "hotcell::serve", %run, reason, "what a run has used cannot be counted");
        }
    }

    /// Forgets how much was counted of runs that the journal does not have any more: nothing can be counted of them again. So what is
    /// kept does not grow with every run that there ever was.
    pub(crate) async fn forget_gone(&self, journal: &dyn RunStore) -> Result<(), Problem> {
        let mut after = String::new();
        loop {
            let page = self.store.counted_runs(&after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(last);
            let mut gone = Vec::new();
            for run in page.into_iter().map(RunId::from) {
                match journal.entries(&run, u64::MAX, 1).await {
                    Err(JournalError::NoSuchRun(_)) => gone.push(run),
                    other => drop(other?),
                }
            }
            if !gone.is_empty() {
                // Whoever has read one of them before it was removed has counted it then.
                let _alone = self.counting.write().await;
                self.store.forget_counted(&gone)?;
            }
        }
    }

    /// Counts fuel that was used for no run.
    pub(crate) fn count_fuel(&self, fuel: Fuel, now: SystemTime) {
        if !self.counts() {
            return;
        }
        let used = Spent::of(&Usage { fuel, ..Usage::default() });
        if let Err(error) = self.store.count_besides(&used, &Month::of(now)) {
            tracing::error!(target: "hotcell::serve", %error, "fuel that was used cannot be counted");
        }
    }

    /// What was used in this month, and what may be.
    pub(crate) fn this_month(&self, now: SystemTime) -> Result<MonthView, Problem> {
        let month = Month::of(now);
        let MonthBudget { cost, tokens, fuel } = self.quota.month;
        Ok(MonthView {
            used: self.store.spent_in(&month)?.amounts(),
            limits: Amounts { usd: cost.map(Cost::to_usd), tokens, fuel: fuel.map(|fuel| fuel.0) },
            resets_at: month.ends(now).0,
            month: month.as_str().to_owned(),
        })
    }

    /// How many bytes are kept, where that is limited.
    pub(crate) fn stored(&self) -> Result<Option<u64>, StoreError> {
        self.quota.stored.as_ref().map(|(_, folder)| self.stored_in(folder)).transpose()
    }

    /// The server's own file does not become smaller when something is removed from it: of that, what is in use counts.
    fn stored_in(&self, folder: &Path) -> Result<u64, StoreError> {
        Ok(self.stored.size(folder, self.store.path()).saturating_add(self.store.bytes_in_use()?))
    }
}
