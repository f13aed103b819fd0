//! Whether every member of a JSON text is there once. Programs differ in which of two they take: what a gateway looks at may be the one, and
//! what is done here the other.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::problem::shown;

/// A value all members of which have different names.
pub(super) struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Look)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = Distinct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Distinct, A::Error> {
        while items.next_element::<Distinct>()?.is_some() {}
        Ok(Distinct)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Distinct, A::Error> {
        let mut names: HashSet<String> = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format!("`{}` is there twice", shown(&name))));
            }
            names.insert(name);
            members.next_value::<Distinct>()?;
        }
        Ok(Distinct)
    }
}

#[cfg(test)]
mod tests {
    use super::Distinct;

    #[test]
    fn no_member_is_there_twice_at_any_depth() {
        let problem = |text: &str| serde_json::from_str::<Distinct>(text).err().map(|error| error.to_string());
        for good in [r#"{"a": [1, -1, 1.5, "x", null, true], "b": {"a": {}}}"#, "[]", "1", r#"[{"a": 1}, {"a": 1}]"#] {
            assert_eq!(problem(good), None, "{good}");
        }
        for bad in [r#"{"a": 1, "a": 1}"#, r#"{"b": [{"a": 1, "b": 2, "\u0061": 3}]}"#] {
            assert!(problem(bad).is_some_and(|said| said.contains("`a` is there twice")), "{bad}");
        }
    }
}
