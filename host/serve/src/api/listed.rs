//! Lists whose items hold what clients said and agents came to: a thousand of them could be gigabytes.

use serde::Serialize;

use crate::problem::Problem;

/// Bytes of JSON that a list holds.
pub(super) const MOST_BYTES: usize = 32 << 20;

/// A list that is answered. Its items have a size together.
pub(crate) struct Listed<T> {
    all: Vec<T>,
    left: usize,
    /// What says how many items are wanted
    limit: &'static str,
}

impl<T: Serialize> Listed<T> {
    pub(crate) fn new() -> Self {
        Listed { all: Vec::new(), left: MOST_BYTES, limit: "limit" }
    }

    /// The same, where something of this name says how many items are wanted.
    pub(super) fn limited_by(self, limit: &'static str) -> Self {
        Listed { limit, ..self }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds an item. The first one always has room.
    ///
    /// # Errors
    /// When the list would be too large; it says how many items have room.
    pub(crate) fn push(&mut self, item: T) -> Result<(), Problem> {
        let size = serde_json::to_vec(&item).map_or(0, |json| json.len());
        match self.left.checked_sub(size) {
            Some(left) => self.left = left,
            None if self.all.is_empty() => self.left = 0,
            None => {
                let detail =
                    format!("what was found has more than {MOST_BYTES} bytes; ask for less with `{}`", self.limit);
                return Err(Problem::unprocessable(detail).with("limit", self.all.len()));
            }
        }
        self.all.push(item);
        Ok(())
    }

    pub(crate) fn into_all(self) -> Vec<T> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_size_and_one_item_always_has_room() {
        let item = |bytes: usize| "x".repeat(bytes);
        let mut list = Listed::new();
        assert!(list.push(item(MOST_BYTES)).is_ok());
        assert_eq!(list.push(item(1)).map_err(|problem| problem.status), Err(422));
        let mut list = Listed::new();
        for _ in 0..3 {
            assert!(list.push(item(MOST_BYTES / 4)).is_ok());
        }
        assert!(list.push(item(MOST_BYTES / 4)).is_err());
        assert!(list.push(item(10)).is_ok());
        assert_eq!((list.len(), list.into_all().len()), (4, 4));
    }
}
