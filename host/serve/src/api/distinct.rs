//! Whether every member of a JSON text is there once. Programs differ in which of two they take: what a gateway looks at may be the one, and
//! what is done here the other. For the same reason no member has a name that means something to the library alone which reads it.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::problem::shown;

/// How names begin that `serde_json` does not take for names: a member called `$serde_json::private::RawValue` has it read more JSON in the text
/// that is its value, as deeply nested as that is.
const OF_THE_LIBRARY: &str = "$serde_json::private::";

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
            if name.starts_with(OF_THE_LIBRARY) {
                return Err(A::Error::custom(format!("`{}` cannot be the name of a member", shown(&name))));
            }
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
        for bad in [
            r#"{"$serde_json::private::RawValue": "{\"a\": 1, \"a\": 2}"}"#,
            r#"{"a": [{"\u0024serde_json::private::RawValue": "[]"}]}"#,
            r#"{"a": 1, "$serde_json::private::Number": "1"}"#,
        ] {
            assert!(problem(bad).is_some_and(|said| said.contains("cannot be the name of a member")), "{bad}");
        }
    }
}
