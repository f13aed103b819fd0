//! Which part of a list is wanted, and in which order.

use serde::Deserialize;
use utoipa::ToSchema;

use super::params::MOST;
use crate::problem::Problem;

/// The most that is left out before the first one.
pub(super) const FURTHEST: usize = 10_000;

/// How many are wanted, and how many are left out.
pub(super) fn bounds(limit: Option<usize>, offset: Option<usize>) -> Result<(usize, usize), Problem> {
    let (limit, offset) = (limit.unwrap_or(10), offset.unwrap_or(0));
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::unprocessable(format!("`limit` has to be from 1 to {MOST}, and is {limit}")));
    }
    if offset > FURTHEST {
        return Err(Problem::unprocessable(format!("`offset` has to be from 0 to {FURTHEST}, and is {offset}")));
    }
    Ok((limit, offset))
}

/// In which order.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SortOrder {
    /// The first one first
    Asc,
    /// The last one first
    Desc,
}
