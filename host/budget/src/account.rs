//! Who used what, and what is left for all.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Budget, Bytes, Cost, Fuel, Usage};

/// What was used, by the name of who used it: a script, a plugin, a model.
///
/// There is one for every call, node and turn, nearly always with a single name in it: hence a list in the order of names,
/// of which one entry takes no more than its own room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Arc<str>, Usage>", into = "BTreeMap<Arc<str>, Usage>")]
pub struct Account(Vec<(Arc<str>, Usage)>);

impl From<BTreeMap<Arc<str>, Usage>> for Account {
    fn from(usages: BTreeMap<Arc<str>, Usage>) -> Self {
        Self(usages.into_iter().collect())
    }
}

impl From<Account> for BTreeMap<Arc<str>, Usage> {
    fn from(account: Account) -> Self {
        account.0.into_iter().collect()
    }
}

impl Account {
    /// What one of them used.
    pub fn of(who: impl Into<Arc<str>>, usage: Usage) -> Self {
        Self(vec![(who.into(), usage)])
    }

    /// Adds what one of them used.
    pub fn add(&mut self, who: impl Into<Arc<str>>, usage: Usage) {
        let who = who.into();
        match self.0.binary_search_by(|(known, _)| known.cmp(&who)) {
            Ok(place) => self.0[place].1 += usage,
            Err(place) => self.0.insert(place, (who, usage)),
        }
    }

    /// What all of them used together.
    pub fn total(&self) -> Usage {
        let mut total = Usage::default();
        for (_, usage) in &self.0 {
            total += usage.clone();
        }
        total
    }

    /// Each of them, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Usage)> {
        self.0.iter().map(|(who, usage)| (&**who, usage))
    }

    /// Whether nobody used anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Self) {
        if self.0.is_empty() {
            self.0 = other.0;
            return;
        }
        for (who, usage) in other.0 {
            self.add(who, usage);
        }
    }
}

/// What all calls of a run may use together. What is not named has no cap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunBudget {
    /// Calls into cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Fuel of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<Fuel>,
    /// Time of all of them in milliseconds, added up also where they run side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_clock_ms: Option<u64>,
    /// HTTP requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_requests: Option<u64>,
    /// HTTP bytes, sent and received together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_bytes: Option<Bytes>,
    /// Bytes written to files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<Bytes>,
    /// Files, directories and links made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Requests to models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_requests: Option<u64>,
    /// Tokens of models, read and written together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What requests to models may cost.
    #[serde(skip)]
    pub cost: Option<CostCap>,
}

/// What requests to models may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostCap {
    /// The most.
    pub most: Cost,
    /// The setting that says so.
    pub setting: &'static str,
    /// Whether the reply that goes beyond it counts for nothing; otherwise it is taken, and no other request follows.
    pub is_strict: bool,
}

/// More was spent than may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: requests to models cost {spent}, and at most {} may be spent", .cap.setting, .cap.most)]
pub struct CostExceeded {
    /// What was spent, or would be with the next request.
    pub spent: Cost,
    /// What may be.
    pub cap: CostCap,
}

/// The run has used up what it may.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("run-budget: the run has used up the {cap} that its graph allows it as `budget.{key}`")]
pub struct Overdrawn {
    /// The part of [`RunBudget`] that is used up.
    pub key: &'static str,
    /// Its cap.
    pub cap: u64,
}

/// What a run may still use. Everything that works for the run shares one.
///
/// A call is given what is left when it begins. Calls that run side by side may therefore overdraw together by what each
/// of them was given; no call begins once nothing is left.
#[derive(Debug, Default)]
pub struct BudgetScope {
    cap: RunBudget,
    spent: Mutex<Usage>,
    /// Whoever gave this budget scope: what is taken out of this one is taken out of that one too.
    outer: Option<Arc<BudgetScope>>,
}

impl BudgetScope {
    /// A budget scope of which `spent` is gone already.
    pub fn new(cap: RunBudget, spent: Usage) -> Self {
        Self { cap, spent: Mutex::new(spent), outer: None }
    }

    /// A budget scope within this one, for a part of the run that has a cap of its own.
    pub fn part(self: &Arc<Self>, cap: RunBudget, spent: Usage) -> Self {
        Self { cap, spent: Mutex::new(spent), outer: Some(self.clone()) }
    }

    /// The budget of one call, cut to what is left.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn clamp(&self, budget: &Budget) -> Result<Budget, Overdrawn> {
        let from_outer = self.outer.as_ref().map(|outer| outer.clamp(budget)).transpose()?;
        let budget = from_outer.as_ref().unwrap_or(budget);
        if self.cap == RunBudget::default() {
            return Ok(budget.clone());
        }
        let spent = self.spent();
        let cap = &self.cap;
        left("calls", cap.calls, spent.calls)?;
        let fuel = left("fuel", cap.fuel.map(|fuel| fuel.0), spent.fuel.0)?;
        let used = u64::try_from(spent.wall_clock.as_millis()).unwrap_or(u64::MAX);
        let time = left("wall_clock_ms", cap.wall_clock_ms, used)?;
        // A call that sends and writes nothing may go on when nothing of that is left.
        let file_bytes = cap.file_bytes.map_or(u64::MAX, |cap| cap.0.saturating_sub(spent.file_bytes.0));
        let files = cap.files.map_or(u64::MAX, |cap| cap.saturating_sub(spent.files));
        let requests = cap.http_requests.map(|cap| cap.saturating_sub(spent.http_requests));
        let bytes = cap.http_bytes.map(|cap| cap.0.saturating_sub((spent.http_sent + spent.http_received).0));
        drop(spent);
        let mut clamped = budget.clone();
        clamped.fuel = clamped.fuel.min(Fuel(fuel.unwrap_or(u64::MAX)));
        clamped.wall_clock = clamped.wall_clock.min(time.map_or(Duration::MAX, Duration::from_millis));
        clamped.http_requests =
            clamped.http_requests.min(requests.map_or(u32::MAX, |left| u32::try_from(left).unwrap_or(u32::MAX)));
        clamped.http_bytes = clamped.http_bytes.min(Bytes(bytes.unwrap_or(u64::MAX)));
        clamped.file_bytes = clamped.file_bytes.min(Bytes(file_bytes));
        clamped.files = clamped.files.min(u32::try_from(files).unwrap_or(u32::MAX));
        Ok(clamped)
    }

    /// Whether a model may be asked.
    ///
    /// # Errors
    /// When no request or token is left.
    pub fn may_ask_model(&self) -> Result<(), Overdrawn> {
        if let Some(outer) = &self.outer {
            outer.may_ask_model()?;
        }
        let spent = self.spent();
        left("model_requests", self.cap.model_requests, spent.model_requests)?;
        left("tokens", self.cap.tokens, spent.input_tokens.saturating_add(spent.output_tokens))?;
        Ok(())
    }

    /// Whether no more was spent on models than may be, and `more` would not be too much.
    ///
    /// # Errors
    /// When it is more.
    pub fn within_cost(&self, more: Cost) -> Result<(), CostExceeded> {
        if let Some(cap) = &self.cap.cost {
            let spent = self.spent().cost + more;
            if spent > cap.most {
                return Err(CostExceeded { spent, cap: cap.clone() });
            }
        }
        self.outer.as_ref().map_or(Ok(()), |outer| outer.within_cost(more))
    }

    /// Whether no more was spent on models than may be, as far as what was done for it is to count for nothing otherwise.
    ///
    /// # Errors
    /// When it is more.
    pub fn within_strict_cost(&self) -> Result<(), CostExceeded> {
        if let Some(cap) = self.cap.cost.as_ref().filter(|cap| cap.is_strict) {
            let spent = self.spent().cost;
            if spent > cap.most {
                return Err(CostExceeded { spent, cap: cap.clone() });
            }
        }
        self.outer.as_ref().map_or(Ok(()), |outer| outer.within_strict_cost())
    }

    /// Takes out what was used.
    pub fn spend(&self, usage: &Usage) {
        *self.spent() += usage.clone();
        if let Some(outer) = &self.outer {
            outer.spend(usage);
        }
    }

    fn spent(&self) -> MutexGuard<'_, Usage> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left of a cap, if there is one; an error if it is nothing.
fn left(key: &'static str, cap: Option<u64>, spent: u64) -> Result<Option<u64>, Overdrawn> {
    match cap {
        Some(cap) if spent >= cap => Err(Overdrawn { key, cap }),
        Some(cap) => Ok(Some(cap - spent)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_11_many_small_calls_end_where_one_large_call_would() {
        let budget_scope =
            BudgetScope::new(RunBudget { fuel: Some(Fuel(250)), ..RunBudget::default() }, Usage::default());
        let call = Budget { fuel: Fuel(100), ..Budget::default() };
        let mut clamped = Vec::new();
        while let Ok(budget) = budget_scope.clamp(&call) {
            budget_scope.spend(&Usage { calls: 1, fuel: budget.fuel, ..Usage::default() });
            clamped.push(budget.fuel.0);
        }
        assert_eq!(clamped, [100, 100, 50]);
        let error = budget_scope.clamp(&call).map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("run-budget: the run has used up the 250 that its graph allows it as `budget.fuel`".to_owned())
        );
    }

    #[test]
    fn a_part_of_a_run_is_held_by_its_own_cap_and_by_the_whole_run() {
        let cap = |fuel| RunBudget { fuel: Some(Fuel(fuel)), ..RunBudget::default() };
        let whole = Arc::new(BudgetScope::new(cap(250), Usage::default()));
        let part = whole.part(cap(150), Usage::default());
        let spend = |budget_scope: &BudgetScope| {
            let clamped = budget_scope.clamp(&Budget { fuel: Fuel(100), ..Budget::default() })?;
            budget_scope.spend(&Usage { fuel: clamped.fuel, ..Usage::default() });
            Ok::<u64, Overdrawn>(clamped.fuel.0)
        };
        assert_eq!([spend(&part), spend(&part)], [Ok(100), Ok(50)]);
        assert_eq!(spend(&part), Err(Overdrawn { key: "fuel", cap: 150 }));
        assert_eq!(spend(&whole), Ok(100));
        let other = whole.part(RunBudget::default(), Usage::default());
        assert_eq!(spend(&other), Err(Overdrawn { key: "fuel", cap: 250 }));
    }

    #[test]
    fn each_cap_ends_what_it_caps() {
        let cap: RunBudget = serde_json::from_str(
            r#"{ "calls": 2, "wall_clock_ms": 10, "http_requests": 1, "http_bytes": 5, "file_bytes": 9, "files": 3, "model_requests": 1, "tokens": 7 }"#,
        )
        .unwrap_or_default();
        let spent = |usage: Usage| BudgetScope::new(cap.clone(), usage);
        let budget = Budget::default();
        assert!(spent(Usage { calls: 2, ..Usage::default() }).clamp(&budget).is_err());
        assert!(spent(Usage { wall_clock: Duration::from_millis(10), ..Usage::default() }).clamp(&budget).is_err());
        let clamped = spent(Usage { http_requests: 1, http_sent: Bytes(2), ..Usage::default() }).clamp(&budget);
        assert!(clamped.is_ok_and(|clamped| (clamped.http_requests, clamped.http_bytes) == (0, Bytes(3))));
        let clamped = spent(Usage { file_bytes: Bytes(2), files: 7, ..Usage::default() }).clamp(&budget);
        assert!(clamped.is_ok_and(|clamped| (clamped.file_bytes, clamped.files) == (Bytes(7), 0)));
        assert!(spent(Usage::default()).may_ask_model().is_ok());
        assert!(spent(Usage { model_requests: 1, ..Usage::default() }).may_ask_model().is_err());
        assert!(spent(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() }).may_ask_model().is_err());
        assert!(BudgetScope::default().clamp(&budget).is_ok_and(|clamped| clamped == budget));
    }

    #[test]
    fn what_is_spent_on_models_is_held_by_the_part_and_by_the_whole() {
        let cap = |usd, setting| RunBudget {
            cost: Some(CostCap { most: Cost::from_usd(usd), setting, is_strict: setting == "part" }),
            ..RunBudget::default()
        };
        let whole = Arc::new(BudgetScope::new(cap(1.0, "whole"), Usage::default()));
        let part = whole.part(cap(0.5, "part"), Usage::default());
        let spend = |usd| part.spend(&Usage { cost: Cost::from_usd(usd), ..Usage::default() });
        spend(0.5);
        // As much as may be is not more.
        assert_eq!(part.within_cost(Cost(0)), Ok(()));
        assert!(part.within_cost(Cost(1)).is_err());
        spend(0.1);
        let error = part.within_cost(Cost(0)).map_err(|error| error.to_string());
        assert_eq!(error, Err("`part`: requests to models cost $0.60, and at most $0.50 may be spent".to_owned()));
        assert_eq!(whole.within_cost(Cost(0)), Ok(()));
        spend(0.5);
        assert_eq!(whole.within_cost(Cost(0)).map_err(|error| error.cap.setting), Err("whole"));
        assert_eq!(whole.within_strict_cost(), Ok(()));
        assert!(part.within_strict_cost().is_err());
    }

    #[test]
    fn an_account_adds_up_by_name() {
        let one = Usage { calls: 1, fuel: Fuel(3), ..Usage::default() };
        let mut account = Account::of("a", one.clone());
        account += Account::of("b", one.clone());
        account.add("a", one);
        let fuel: Vec<_> = account.iter().map(|(who, usage)| (who, usage.fuel.0)).collect();
        assert_eq!((fuel, account.total().calls), (vec![("a", 6), ("b", 3)], 3));
        let written = serde_json::to_value(&account).unwrap_or_default();
        assert_eq!(written.pointer("/a/fuel"), Some(&serde_json::json!(6)));
        assert_eq!(serde_json::from_value(written).ok(), Some(account));
    }
}
