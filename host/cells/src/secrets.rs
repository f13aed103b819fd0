//! Secrets of the operator's. A guest gets placeholders; values are put in on the way out, only towards servers the
//! grant of the secret names, and taken out of whatever comes back or is said about the call.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use aho_corasick::AhoCorasick;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::clock::Repeatable;
use crate::grants::Grants;
use crate::reflected::Forms;

/// Digits of the number of a secret.
const MAX_DIGITS: usize = 9;

/// Values of secrets by name. They are never shown, not even in debug output.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Held>);

#[derive(Default)]
struct Held {
    values: BTreeMap<String, String>,
    /// What to look for, made when it is first needed and kept for all calls
    forms: OnceLock<Option<Forms>>,
}

impl Secrets {
    /// The values by name.
    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(Arc::new(Held { values: values.into_iter().collect(), forms: OnceLock::new() }))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.values.keys()).finish()
    }
}

/// The secrets of one call.
pub(crate) struct Vault {
    values: BTreeMap<String, String>,
    nonce: u64,
    /// Names whose placeholder the guest has asked for; a placeholder carries the index.
    issued: Mutex<Vec<String>>,
    held: Secrets,
    /// What to look for where not all that are held are granted
    forms: OnceLock<Option<Forms>>,
}

impl Vault {
    pub(crate) fn new(secrets: &Secrets, grants: &Grants, repeatable: Option<&Repeatable>) -> Self {
        let granted = |name: &String| grants.secret.iter().any(|grant| grant.name == *name);
        let values = secrets.0.values.iter().filter(|(name, _)| granted(name));
        let values: BTreeMap<String, String> = values.map(|(n, v)| (n.clone(), v.clone())).collect();
        let nonce = match (values.is_empty(), repeatable) {
            (true, _) => 0,
            (false, Some(repeatable)) => repeatable.seed,
            (false, None) => rand::random(),
        };
        Self { values, nonce, issued: Mutex::default(), held: secrets.clone(), forms: OnceLock::new() }
    }

    /// The secrets of a call that is executed again: the same names and placeholders, and no values.
    pub(crate) fn played(secrets: Option<&(u64, Vec<String>)>) -> Self {
        let (nonce, names) = secrets.cloned().unwrap_or_default();
        let values = names.into_iter().map(|name| (name, String::new())).collect();
        Self { values, nonce, issued: Mutex::default(), held: Secrets::default(), forms: OnceLock::new() }
    }

    /// What a recording keeps of the secrets: what placeholders are made of, and names.
    pub(crate) fn recorded(&self) -> Option<(u64, Vec<String>)> {
        self.has_values().then(|| (self.nonce, self.values.keys().cloned().collect()))
    }

    /// Whether there is any secret.
    pub(crate) fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether a value is in these bytes.
    pub(crate) fn is_told_in(&self, bytes: &[u8]) -> bool {
        self.all_forms().is_some_and(|forms| forms.without(bytes).is_some())
    }

    /// The placeholder of a secret that is granted; none where the operator has not set its value.
    pub(crate) fn placeholder(&self, name: &str) -> Option<String> {
        self.values.get(name)?;
        let mut issued = self.issued();
        let index = issued.iter().position(|known| known == name).unwrap_or_else(|| {
            issued.push(name.to_owned());
            issued.len() - 1
        });
        Some(self.text(index))
    }

    /// The placeholders of all that are granted and set, by name.
    pub(crate) fn placeholders(&self) -> Vec<(String, String)> {
        self.values.keys().filter_map(|name| Some((name.clone(), self.placeholder(name)?))).collect()
    }

    fn text(&self, index: usize) -> String {
        format!("{}{index}-", self.begin())
    }

    /// How the placeholders of this call begin.
    fn begin(&self) -> String {
        format!("hotcell-secret-{:016x}-", self.nonce)
    }

    fn issued(&self) -> MutexGuard<'_, Vec<String>> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a placeholder has been given out: without one, nothing has to be looked for.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.issued().is_empty()
    }

    /// The secrets whose placeholder occurs in `text`.
    pub(crate) fn mentioned(&self, text: &[u8]) -> Vec<String> {
        let found: BTreeSet<usize> = self.placeholders_in(text).into_iter().map(|(_, index)| index).collect();
        let issued = self.issued();
        found.into_iter().filter_map(|index| issued.get(index).cloned()).collect()
    }

    /// `text` with the values of those `allowed` in the place of their placeholders, written so that they fit; none if that has
    /// more than `limit` bytes. A guest writes a placeholder as often as it likes, and a value may be long.
    pub(crate) fn fill(
        &self,
        text: &[u8],
        allowed: &[String],
        encode: fn(&str) -> Cow<'_, str>,
        limit: u64,
    ) -> Option<Vec<u8>> {
        let issued = self.issued();
        let value = |name: &String| Some(encode(self.values.get(name).filter(|_| allowed.contains(name))?));
        let values: Vec<Option<Cow<'_, str>>> = issued.iter().map(value).collect();
        let (mut filled, mut rest) = (Vec::with_capacity(text.len()), 0);
        for (place, index) in self.placeholders_in(text) {
            let Some(Some(value)) = values.get(index) else { continue };
            filled.extend_from_slice(&text[rest..place.start]);
            filled.extend_from_slice(value.as_bytes());
            rest = place.end;
            if (filled.len() + text.len() - rest) as u64 > limit {
                return None;
            }
        }
        filled.extend_from_slice(&text[rest..]);
        Some(filled)
    }

    /// Where placeholders stand, each with the number of its secret. The text is gone through once, however many secrets there are.
    fn placeholders_in(&self, text: &[u8]) -> Vec<(Range<usize>, usize)> {
        let Ok(begin) = AhoCorasick::new([self.begin()]) else { return Vec::new() };
        let placeholder = |found: aho_corasick::Match| {
            let rest = &text[found.end()..];
            let digits = rest.iter().take(MAX_DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
            let index: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
            let end = format!("{index}-");
            rest.starts_with(end.as_bytes()).then(|| (found.start()..found.end() + end.len(), index))
        };
        begin.find_iter(text).filter_map(placeholder).collect()
    }

    /// The secrets that have a value.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// A response with the names of these secrets in the place of their values, in whatever form a server that reflects requests
    /// writes them. A header whose name has a value in it is left out.
    pub(crate) fn scrub_response(&self, headers: &mut HeaderMap, body: Bytes, of: &[&str]) -> Bytes {
        let some;
        let forms = if of.len() == self.values.len() {
            self.all_forms()
        } else {
            let values = self.values.iter().filter(|(name, _)| of.contains(&name.as_str()));
            some = Forms::of(values.map(|(name, value)| (shown(name), value.as_str())));
            some.as_ref()
        };
        let Some(forms) = forms else { return body };
        let names = headers.keys().filter(|name| forms.without(name.as_str().as_bytes()).is_some());
        for name in names.cloned().collect::<Vec<_>>() {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            if let Some(scrubbed) = forms.without(value.as_bytes()) {
                *value = HeaderValue::from_bytes(&scrubbed).unwrap_or_else(|_| HeaderValue::from_static("(a secret)"));
            }
        }
        forms.without(&body).map_or(body, Bytes::from)
    }

    /// `text` with the names of secrets in the place of their values.
    pub(crate) fn scrub(&self, text: String) -> String {
        match self.all_forms().and_then(|forms| forms.without(text.as_bytes())) {
            Some(scrubbed) => String::from_utf8_lossy(&scrubbed).into_owned(),
            None => text,
        }
    }

    fn all_forms(&self) -> Option<&Forms> {
        let kept = if self.values.len() == self.held.0.values.len() { &self.held.0.forms } else { &self.forms };
        kept.get_or_init(|| Forms::of(self.values.iter().map(|(name, value)| (shown(name), value.as_str())))).as_ref()
    }
}

/// What stands where the value of a secret was.
fn shown(name: &str) -> String {
    format!("(secret {name})")
}

/// How a value is written inside a JSON string.
pub(crate) fn in_json(value: &str) -> Cow<'_, str> {
    let quoted = serde_json::Value::from(value).to_string();
    Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
}

/// How a value is written inside a query or a form.
pub(crate) fn in_url(value: &str) -> Cow<'_, str> {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>().into()
}

/// A value as it is.
pub(crate) fn as_is(value: &str) -> Cow<'_, str> {
    Cow::Borrowed(value)
}

#[cfg(test)]
mod tests {
    use super::{Secrets, Vault, as_is, in_json, in_url};

    fn vault() -> Vault {
        let grants = toml::from_str("secret = [{ name = 'KEY', servers = ['https://x.org'] }]");
        let secrets = [("KEY", "s3\"cr et"), ("OTHER", "other-value")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        Vault::new(&Secrets::new(secrets), &grants.unwrap_or_else(|error| panic!("{error}")), None)
    }

    #[test]
    fn attack_57_only_granted_secrets_answer() {
        let vault = vault();
        assert!(vault.placeholder("KEY").is_some_and(|text| !text.contains("s3")));
        assert_eq!(vault.placeholder("OTHER"), None);
        assert_eq!(vault.placeholder("NONE"), None);
    }

    #[test]
    fn values_are_put_in_as_the_place_needs_and_taken_out_again() {
        let vault = vault();
        let Some(placeholder) = vault.placeholder("KEY") else { panic!("it is granted") };
        let text = format!("a={placeholder}&b={placeholder}");
        let allowed = vault.mentioned(text.as_bytes());
        assert_eq!(allowed, ["KEY"]);
        let fill = |encode| {
            let filled = vault.fill(text.as_bytes(), &allowed, encode, 1000).unwrap_or_default();
            String::from_utf8_lossy(&filled).into_owned()
        };
        assert_eq!(fill(as_is), "a=s3\"cr et&b=s3\"cr et");
        assert_eq!(fill(in_json), "a=s3\\\"cr et&b=s3\\\"cr et");
        assert_eq!(fill(in_url), "a=s3%22cr+et&b=s3%22cr+et");
        assert_eq!(vault.fill(text.as_bytes(), &[], as_is, 1000).as_deref(), Some(text.as_bytes()));
        assert_eq!(vault.scrub("x s3\"cr et y".to_owned()), "x (secret KEY) y");
        assert_eq!(vault.scrub(r#"{"k":"s3\"cr et"}"#.to_owned()), r#"{"k":"(secret KEY)"}"#);
        assert_eq!(vault.scrub("k=s3%22cr+et&l".to_owned()), "k=(secret KEY)&l");
    }

    #[test]
    fn what_is_nearly_a_placeholder_stays_as_it_is() {
        let vault = vault();
        let Some(placeholder) = vault.placeholder("KEY") else { panic!("it is granted") };
        let begin = placeholder.strip_suffix("0-").unwrap_or_else(|| panic!("`{placeholder}` is the first"));
        for nearly in ["", "-", "0", "00-", "1-", "+0-", "18446744073709551616-", "0\u{e9}-"] {
            let text = format!("{begin}{nearly}");
            assert!(vault.mentioned(text.as_bytes()).is_empty(), "{text}");
            let both = format!("{text} {placeholder}");
            let filled = vault.fill(both.as_bytes(), &["KEY".to_owned()], as_is, 1000).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&filled), format!("{text} s3\"cr et"));
        }
    }

    #[test]
    fn a_value_is_not_put_in_more_often_than_there_is_room_for() {
        let grants = toml::from_str("secret = [{ name = 'KEY', servers = ['https://x.org'] }]");
        let value = "v".repeat(500);
        let secrets = Secrets::new([("KEY".to_owned(), value.clone())]);
        let vault = Vault::new(&secrets, &grants.unwrap_or_else(|error| panic!("{error}")), None);
        let Some(placeholder) = vault.placeholder("KEY") else { panic!("it is granted") };
        // What is sent is small, whatever comes of it.
        let text = placeholder.repeat(3);
        assert!(text.len() < 1000, "{placeholder}");
        let fill = |limit| vault.fill(text.as_bytes(), &["KEY".to_owned()], as_is, limit);
        assert_eq!(fill(1500), Some(value.repeat(3).into_bytes()));
        assert_eq!(fill(1499), None);
    }

    #[test]
    fn of_a_response_nothing_is_left_that_has_a_value() {
        let grants =
            "secret = [{ name = 'KEY', servers = ['https://x.org'] }, { name = 'OTHER', servers = ['https://y.org'] }]";
        let grants = toml::from_str(grants).unwrap_or_else(|error| panic!("{error}"));
        let secrets = [("KEY", "S3-cret"), ("OTHER", "other-value")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let vault = Vault::new(&Secrets::new(secrets), &grants, None);
        for (of, other) in [(&["KEY"][..], "other-value"), (&["KEY", "OTHER"][..], "(secret OTHER)")] {
            let mut headers = http::HeaderMap::new();
            headers.insert("x-s3-cret", http::HeaderValue::from_static("1"));
            headers.insert("x-seen", http::HeaderValue::from_static("a S3-cret, other-value"));
            let body = vault.scrub_response(&mut headers, bytes::Bytes::from_static(b"\xffs3-CRET other-value"), of);
            assert_eq!(&body[..], [&b"\xff(secret KEY) "[..], other.as_bytes()].concat());
            assert_eq!(headers.len(), 1);
            assert_eq!(headers["x-seen"], format!("a (secret KEY), {other}"));
        }
    }

    #[test]
    fn secrets_are_not_shown_for_debugging() {
        let shown = format!("{:?}", Secrets::new([("KEY".to_owned(), "value".to_owned())]));
        assert_eq!(shown, "{\"KEY\"}");
    }
}
