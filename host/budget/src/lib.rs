//! The budget vector: what one call into a cell may consume, what it did consume, and what each limit is called.
//!
//! This crate exists so that the crate that enforces limits and the crate that adds them up over a run speak of
//! the same quantities by the same names. It holds plain values: it must not measure, enforce or depend on a
//! runtime.
//!
//! ```
//! use hotcell_budget::{Budget, Usage, Fuel};
//!
//! let budget = Budget::default();
//! assert_eq!(budget.fuel, Fuel(200_000_000));
//!
//! let mut total = Usage::default();
//! total += Usage { fuel: Fuel(12), calls: 1, ..Usage::default() };
//! assert!(total.fuel < budget.fuel);
//! ```

mod account;
mod budget;
mod limit;
mod quantity;
mod usage;

pub use account::{Account, BudgetScope, CostCap, CostExceeded, Overdrawn, RunBudget};
pub use budget::Budget;
pub use limit::Limit;
pub use quantity::{Bytes, Cost, Fuel, JOURNAL_BYTES};
pub use usage::Usage;
