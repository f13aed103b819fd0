//! What an unquoted word of YAML means: the core schema of YAML 1.2.

use hotcell_graph::value::Number;

/// What a plain scalar stands for.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    /// `.inf`, `.nan` or a number beyond all that can be held: JSON has no value for it
    NotFinite,
    Text,
}

pub(super) fn resolve(plain: &str) -> Scalar {
    match plain {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Scalar::NotFinite,
        _ => {}
    }
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Scalar::NotFinite;
    }
    for (prefix, base) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = plain.strip_prefix(prefix)
            && !digits.starts_with(['+', '-'])
            && let Some(number) = Number::parse_integer(digits, base)
        {
            return Scalar::Number(number);
        }
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Number::parse_integer(plain, 10).map_or(Scalar::Text, Scalar::Number);
    }
    if !is_float(unsigned) {
        return Scalar::Text;
    }
    match plain.parse().ok().and_then(Number::from_f64) {
        Some(number) => Scalar::Number(number),
        None => Scalar::NotFinite,
    }
}

/// Digits with a fraction, an exponent or both; the sign is already taken off.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_mantissa = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let has_exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    has_mantissa && has_exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_yaml_1_2_says() {
        for (plain, expected) in [
            ("7", "7"),
            ("+7", "7"),
            ("-0", "0"),
            ("007", "7"),
            ("0o17", "15"),
            ("0xfF", "255"),
            ("9007199254740993", "9007199254740993"),
            ("100000000000000000000000000000000000001", "100000000000000000000000000000000000001"),
            ("1.0", "1.0"),
            ("-.5", "-0.5"),
            ("5.", "5.0"),
            ("1e3", "1000.0"),
            ("1.5E-1", "0.15"),
        ] {
            match resolve(plain) {
                Scalar::Number(number) => {
                    assert_eq!(hotcell_graph::Value::Number(number).to_json(), expected, "{plain}");
                }
                other => panic!("{plain} is {other:?}"),
            }
        }
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "True!",
            "tRue",
            "nil",
            "1_000",
            "0b1",
            "1:30",
            "2026-11-21",
            ".",
            "+",
            "-",
            "e5",
            ".e5",
            "1e",
            "1e+",
            "0x",
            "0xg",
            "0x-5",
            "1.2.3",
            "--1",
            "infinity",
            "NaN",
            "inf",
        ] {
            assert_eq!(resolve(text), Scalar::Text, "{text}");
        }
        for null in ["", "~", "null", "NULL"] {
            assert_eq!(resolve(null), Scalar::Null, "{null}");
        }
        for infinite in [".inf", "-.INF", "+.Inf", ".nan", "1e999"] {
            assert_eq!(resolve(infinite), Scalar::NotFinite, "{infinite}");
        }
        assert_eq!(resolve("True"), Scalar::Bool(true));
        assert_eq!(resolve(&"9".repeat(5000)), Scalar::Text);
    }
}
