//! The forms in which a server that reflects what it was sent writes a secret, and how they are taken out of its answers.
//!
//! The promise: a value of at least four bytes is found as it is, and in every form that common servers and libraries give a text
//! when they put it into JSON, HTML, an address, a log or a dump, in capitals, small letters or as it is. It is no promise against a server that works with the guest:
//! that one has the secret and can write it in a form of its own.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aho_corasick::AhoCorasick;

/// The shortest value, and the shortest form of one, that is searched for: shorter ones would turn up by chance.
const SHORTEST: usize = 4;
/// How base64 is written, with the two letters that differ.
const ALPHABETS: [[u8; 2]; 2] = [*b"+/", *b"-_"];

/// What is searched for.
pub struct Forms {
    automaton: AhoCorasick,
    /// What is shown instead, by the number of the form
    shown: Vec<String>,
}

impl Forms {
    /// All forms of values, each with what is shown in its place; none where there is nothing to search for.
    pub fn of<'v>(values: impl Iterator<Item = (String, &'v str)>) -> Option<Self> {
        let (mut forms, mut shown) = (Vec::new(), Vec::new());
        for (name, value) in values.filter(|(_, value)| value.len() >= SHORTEST) {
            for form in forms_of(value).into_iter().map(String::into_bytes).chain(in_utf_16(value)) {
                forms.push(form);
                shown.push(name.clone());
            }
        }
        if forms.is_empty() {
            return None;
        }
        // Names, addresses and headers are often brought into one case. Only a set of forms that is too large for a machine cannot
        // be built.
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(&forms).ok()?;
        Some(Forms { automaton, shown })
    }

    /// The text without any of the forms; none if there are none in it. Where forms overlap, all of what they cover goes, and the
    /// longest of them says what was there.
    pub fn without(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut covered: Vec<(usize, usize, usize, usize)> = Vec::new();
        for found in self.automaton.find_overlapping_iter(text) {
            let (mut start, mut end) = (found.start(), found.end());
            let (mut length, mut form) = (end - start, found.pattern().as_usize());
            // Found by their ends, so only what was found last can overlap.
            while let Some(&(from, to, longest, of)) = covered.last() {
                if to <= start {
                    break;
                }
                (start, end) = (start.min(from), end.max(to));
                if longest >= length {
                    (length, form) = (longest, of);
                }
                covered.pop();
            }
            covered.push((start, end, length, form));
        }
        if covered.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(text.len());
        let mut rest = 0;
        for (start, end, _, form) in covered {
            out.extend_from_slice(&text[rest..start]);
            out.extend_from_slice(self.shown[form].as_bytes());
            rest = end;
        }
        out.extend_from_slice(&text[rest..]);
        Some(out)
    }
}

/// How a value may be written.
fn forms_of(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let bytes = value.as_bytes();
    let all = |write: &dyn Fn(&mut String, u8)| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write(&mut text, *byte);
            text
        })
    };
    forms.insert(value.to_owned());
    forms.extend(in_json(value));
    forms.extend(in_html(value));
    // Dumps: hexadecimal, in one piece or with something between, and lists of numbers.
    let joined =
        |write: &dyn Fn(&u8) -> String, between: &str| bytes.iter().map(write).collect::<Vec<_>>().join(between);
    for between in ["", ":", " ", "-"] {
        forms.insert(joined(&|byte| format!("{byte:02x}"), between));
    }
    for between in [",", ", ", " "] {
        forms.insert(joined(&|byte| byte.to_string(), between));
        forms.insert(joined(&|byte| format!("0x{byte:02x}"), between));
    }
    // Texts of programs and of mail: all of it, or what is not printed.
    let is_printed = |byte: u8| (b' '..=b'~').contains(&byte);
    for (begin, octal) in [("\\x", false), ("\\", true), ("=", false)] {
        let escaped = |text: &mut String, byte: u8| {
            _ = if octal { write!(text, "{begin}{byte:03o}") } else { write!(text, "{begin}{byte:02x}") };
        };
        forms.insert(all(&escaped));
        forms.insert(all(&|text, byte| match byte {
            b'=' if begin == "=" => escaped(text, byte),
            b'\\' if begin != "=" => text.push_str("\\\\"),
            byte if is_printed(byte) => text.push(byte.into()),
            byte => escaped(text, byte),
        }));
    }
    forms.insert(value.chars().map(|character| character.escape_unicode().to_string()).collect());
    // Quotes that are doubled, as in SQL and CSV, or written as a shell needs it.
    for (quote, written) in [("'", "''"), ("\"", "\"\""), ("'", "'\\''")] {
        forms.insert(value.replace(quote, written));
    }
    // Base64, wherever in a longer text the value stands.
    for form in in_base64(bytes) {
        forms.extend(in_url(&form));
        forms.insert(form.replace('/', "\\/"));
        forms.insert(form);
    }
    forms.extend(in_url(value));
    // What is put into an address is often quoted for it once more.
    let twice: Vec<String> = in_url(value).into_iter().flat_map(|form| in_url(&form)).collect();
    forms.extend(twice);
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// In two bytes a letter, as a client may ask for, either byte first.
fn in_utf_16(value: &str) -> [Vec<u8>; 2] {
    let wide = |bytes: fn(u16) -> [u8; 2]| value.encode_utf16().flat_map(bytes).collect();
    [wide(u16::to_le_bytes), wide(u16::to_be_bytes)]
}

/// Inside a JSON string, or one of JavaScript or Python.
fn in_json(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let quoted = serde_json::Value::from(value).to_string();
    let plain = quoted[1..quoted.len() - 1].to_owned();
    let escaped = |character: char, upper: bool| {
        let mut units = [0; 2];
        character.encode_utf16(&mut units).iter().fold(String::new(), |mut text, unit| {
            let _ = if upper { write!(text, "\\u{unit:04X}") } else { write!(text, "\\u{unit:04x}") };
            text
        })
    };
    for upper in [false, true] {
        // What is not ASCII; what HTML could misunderstand as well; everything.
        let ascii = |text: &str| {
            text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c, upper) }).collect::<String>()
        };
        let careful = |text: &str| {
            text.chars()
                .map(|c| {
                    if c.is_ascii() && !matches!(c, '<' | '>' | '&' | '\'' | '=' | '+' | '/') {
                        c.to_string()
                    } else {
                        escaped(c, upper)
                    }
                })
                .collect::<String>()
        };
        forms.insert(ascii(&plain));
        forms.insert(ascii(&plain).replace('/', "\\/"));
        forms.insert(careful(&plain));
        forms.insert(careful(&plain.replace("\\\"", &escaped('"', upper))));
        for some in [&['<', '>', '&'][..], &['<', '>', '&', '\''][..]] {
            let form: String =
                plain.chars().map(|c| if some.contains(&c) { escaped(c, upper) } else { c.to_string() }).collect();
            forms.insert(ascii(&form));
            forms.insert(form);
        }
        forms.insert(value.chars().map(|c| escaped(c, upper)).collect());
    }
    forms.insert(plain.replace('/', "\\/"));
    forms.insert(plain);
    // A JSON text in a JSON text.
    let again: Vec<String> = forms.iter().map(|form| form.replace('\\', "\\\\").replace('"', "\\\"")).collect();
    forms.extend(again);
    forms
}

/// Inside HTML or XML.
fn in_html(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for (double, single) in [
        ("&quot;", "&#39;"),
        ("&quot;", "&#x27;"),
        ("&quot;", "&#039;"),
        ("&quot;", "&apos;"),
        ("&#34;", "&#39;"),
        ("&#x22;", "&#x27;"),
        ("\"", "'"),
        ("&quot;", "'"),
    ] {
        let form = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let form = form.replace('"', double).replace('\'', single);
        forms.insert(form.replace('/', "&#x2F;"));
        forms.insert(form.replace('/', "&#47;").replace('`', "&#96;").replace('=', "&#61;"));
        forms.insert(form.replace('/', "&#x2F;").replace('`', "&#x60;").replace('=', "&#x3D;"));
        forms.insert(form);
    }
    let every = |write: fn(&mut String, u32)| {
        value.chars().fold(String::new(), |mut text, character| {
            write(&mut text, u32::from(character));
            text
        })
    };
    forms.insert(every(|text, code| _ = write!(text, "&#{code};")));
    forms.insert(every(|text, code| _ = write!(text, "&#x{code:x};")));
    forms.insert(every(|text, code| _ = write!(text, "&#x{code:X};")));
    forms
}

/// Inside an address or a form: libraries differ in what they leave as it is, in the case of their digits, and in blanks.
fn in_url(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for plain in ["-_.~", "-_.*", "-_.!~*'()", "-_.~/", "-_.~!$&'()*+,;=:@/?", "-_.", ""] {
        for upper in [true, false] {
            for blank in ["%20", "+"] {
                forms.insert(value.bytes().fold(String::new(), |mut text, byte| {
                    match byte {
                        b' ' => text.push_str(blank),
                        byte if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) => {
                            text.push(byte.into())
                        }
                        byte if upper => _ = write!(text, "%{byte:02X}"),
                        byte => _ = write!(text, "%{byte:02x}"),
                    }
                    text
                }));
            }
        }
    }
    for upper in [true, false] {
        forms.insert(value.bytes().fold(String::new(), |mut text, byte| {
            let _ = if upper { write!(text, "%{byte:02X}") } else { write!(text, "%{byte:02x}") };
            text
        }));
    }
    forms
}

/// In base64: what is the same wherever in a longer text the value stands. Three bytes are four letters, so there are three ways;
/// letters that a neighbour has a part in are left out.
fn in_base64(bytes: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for alphabet in ALPHABETS {
        for before in 0..3 {
            let bits = |index: usize| -> u8 {
                let bit = index * 6;
                (0..6).fold(0, |letter, offset| {
                    let at = bit + offset;
                    let byte = at / 8;
                    let value = if byte < before { 0 } else { bytes.get(byte - before).copied().unwrap_or_default() };
                    (letter << 1) | ((value >> (7 - at % 8)) & 1)
                })
            };
            // The first letter of which all bits are the value's own, and the first one of which they are not any more.
            let (first, end) = ((before * 8).div_ceil(6), (before + bytes.len()) * 8 / 6);
            forms.push((first..end).map(|index| letter(bits(index), alphabet)).collect());
        }
    }
    forms
}

fn letter(bits: u8, [second_last, last]: [u8; 2]) -> char {
    char::from(match bits {
        0..26 => b'A' + bits,
        26..52 => b'a' + bits - 26,
        52..62 => b'0' + bits - 52,
        62 => second_last,
        _ => last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "s3/cr+et&\"<k'y>=\u{e4}?";

    fn forms(values: &[(&str, &str)]) -> Forms {
        Forms::of(values.iter().map(|(name, value)| (format!("({name})"), *value))).unwrap()
    }

    fn scrubbed(text: &str) -> String {
        let scrubbed = forms(&[("KEY", VALUE)]).without(text.as_bytes());
        scrubbed.map_or_else(|| text.to_owned(), |bytes| String::from_utf8(bytes).unwrap())
    }

    /// Each as some library writes it.
    #[test]
    fn a_value_is_found_in_every_form_that_servers_reflect_it_in() {
        let reflected = [
            VALUE.to_owned(),
            // JSON: serde, Python with and without `ensure_ascii`, PHP with its slashes, Go with its care for HTML.
            serde_json::to_string(VALUE).unwrap(),
            r#"s3/cr+et&\"<k'y>=\u00e4?"#.to_owned(),
            r#"s3\/cr+et&\"<k'y>=\u00e4?"#.to_owned(),
            r#"s3/cr+et\u0026\"\u003ck'y\u003e=\u{e4}?"#.replace("\\u{e4}", "\u{e4}"),
            VALUE.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect(),
            // HTML: Python, Go, PHP, JavaScript, numbers.
            "s3/cr+et&amp;&quot;&lt;k&#x27;y&gt;=\u{e4}?".to_owned(),
            "s3/cr+et&amp;&#34;&lt;k&#39;y&gt;=\u{e4}?".to_owned(),
            "s3/cr+et&amp;&quot;&lt;k&#039;y&gt;=\u{e4}?".to_owned(),
            "s3&#x2F;cr+et&amp;&quot;&lt;k&#x27;y&gt;&#x3D;\u{e4}?".to_owned(),
            VALUE.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
            VALUE.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect(),
            // Addresses: forms, Python's `quote`, JavaScript's `encodeURIComponent`, lower case, everything, twice.
            url::form_urlencoded::byte_serialize(VALUE.as_bytes()).collect(),
            "s3/cr%2Bet%26%22%3Ck%27y%3E%3D%C3%A4%3F".to_owned(),
            "s3%2Fcr%2Bet%26%22%3Ck'y%3E%3D%C3%A4%3F".to_owned(),
            "s3%2fcr%2bet%26%22%3ck%27y%3e%3d%c3%a4%3f".to_owned(),
            VALUE.bytes().map(|byte| format!("%{byte:02x}")).collect(),
            "s3%252Fcr%252Bet%2526%2522%253Ck%2527y%253E%253D%25C3%25A4%253F".to_owned(),
            // Dumps.
            VALUE.bytes().map(|byte| format!("{byte:02x}")).collect(),
            VALUE.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"),
            VALUE.bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
            // Lists of numbers of Python and JavaScript, of Go, of C.
            format!("[{}]", VALUE.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ")),
            format!("{{\"type\":\"Buffer\",\"data\":{}}}", serde_json::to_string(VALUE.as_bytes()).unwrap()),
            VALUE.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(" "),
            VALUE.bytes().map(|byte| format!("0x{byte:02X}")).collect::<Vec<_>>().join(", "),
            // Python's `repr` of bytes, PostgreSQL's escapes, Rust's, mail.
            r#"s3/cr+et&"<k'y>=\xc3\xa4?"#.to_owned(),
            r#"s3/cr+et&"<k'y>=\303\244?"#.to_owned(),
            VALUE.escape_unicode().to_string(),
            r#"s3/cr+et&"<k'y>=3D=C3=A4?"#.to_owned(),
            // SQL, CSV, a shell.
            VALUE.replace('\'', "''"),
            VALUE.replace('"', "\"\""),
            VALUE.replace('\'', "'\\''"),
            // In one case.
            VALUE.to_ascii_uppercase(),
            VALUE.to_ascii_lowercase(),
        ];
        for text in reflected {
            let told = scrubbed(&format!("before {text} after"));
            assert!(told.contains("(KEY)") && !told.contains("cr") && told.len() < 50, "`{text}` became `{told}`");
        }
    }

    /// A server of Windows, or one that a client asked for `utf-16`.
    #[test]
    fn a_value_is_found_in_two_bytes_a_letter() {
        let text = format!("before {VALUE} after");
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let other: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (encoded, begin) in [(wide, &b"b\0e\0f\0"[..]), (other, &b"\0b\0e\0f"[..])] {
            let told = forms(&[("KEY", VALUE)]).without(&encoded).unwrap();
            assert!(told.starts_with(begin) && told.windows(5).any(|part| part == b"(KEY)"));
            // Half a letter beside it looks like a part of the other form.
            let left = encoded.len() - 2 * VALUE.encode_utf16().count() + 5;
            assert!(left - told.len() <= 1, "{left} {}", told.len());
        }
    }

    /// What base64 of a longer text keeps of the value are the two letters at most that it shares with its neighbours.
    #[test]
    fn a_value_is_found_in_base64_wherever_it_stands() {
        let encode = |text: &[u8], alphabet: [u8; 2]| -> String {
            let bit = |at: usize| text.get(at / 8).map_or(0, |byte| (byte >> (7 - at % 8)) & 1);
            (0..(text.len() * 8).div_ceil(6))
                .map(|index| letter((0..6).fold(0, |bits, offset| (bits << 1) | bit(index * 6 + offset)), alphabet))
                .collect()
        };
        assert_eq!(encode(b"user:pass", ALPHABETS[0]), "dXNlcjpwYXNz");
        for value in ["value-of-the-key", "four", "\u{ff}\u{fe}??>>~~"] {
            for before in 0..7 {
                for after in 0..4 {
                    for alphabet in ALPHABETS {
                        let text = format!("{}{value}{}", "u".repeat(before), "z".repeat(after));
                        let encoded = encode(text.as_bytes(), alphabet);
                        let whole = encode(value.as_bytes(), alphabet).len();
                        let left = forms(&[("K", value)]).without(encoded.as_bytes());
                        let left = left.unwrap_or_else(|| panic!("`{value}` after {before} is whole in `{encoded}`"));
                        let around = (before + after).div_ceil(3) * 4 + 4 + "(K)".len();
                        assert!(left.len() <= around, "{} of {whole} and {around}", left.len());
                    }
                }
            }
        }
        let in_json = encode(b"\xff\xff\xffvalue\xff\xff\xff", ALPHABETS[0]).replace('/', "\\/");
        assert!(forms(&[("K", "value")]).without(in_json.as_bytes()).is_some());
    }

    #[test]
    fn of_values_that_overlap_nothing_is_left() {
        let forms = forms(&[("A", "abcdef"), ("B", "defghi"), ("C", "abcdefgh"), ("D", "efgh")]);
        let told = |text: &str| forms.without(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(told("-abcdef-").as_deref(), Some("-(A)-"));
        assert_eq!(told("-abcdefghi-").as_deref(), Some("-(C)-"));
        assert_eq!(told("-abcdefgh-defghi-").as_deref(), Some("-(C)-(B)-"));
        assert_eq!(told("abcdefabcdef").as_deref(), Some("(A)(A)"));
        assert_eq!(told("abcde"), None);
    }

    #[test]
    fn what_is_short_is_not_searched_for() {
        assert!(Forms::of([("(K)".to_owned(), "abc")].into_iter()).is_none());
    }
}
