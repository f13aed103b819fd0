//! Printing results.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this module is for")]

use crate::measure::{Row, Value};

pub(crate) fn line(text: &str) {
    println!("{text}");
}

pub(crate) fn problem(text: &str) {
    eprintln!("hotcell-bench: {text}");
}

pub(crate) fn print(name: &str, about: &str, rows: &[Row]) {
    println!("\n{name}: {about}");
    let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    for row in rows {
        let value = match &row.value {
            Value::Time { median, p99, count } => {
                format!("{:>12} median {:>12} p99 {count:>6} samples", format!("{median:.1?}"), format!("{p99:.1?}"))
            }
            Value::Bytes(bytes) => format!("{:>12}", format!("{:.1} KB", *bytes as f64 / 1000.0)),
            Value::LeftOut => "left out".to_owned(),
        };
        let ratio = row.ratio.as_ref().map(|(of, ratio)| format!("  {ratio:.2} {of}")).unwrap_or_default();
        let target = match &row.target {
            Some((target, true)) => format!("  [target {target}: met]"),
            Some((target, false)) => format!("  [target {target}: NOT met]"),
            None => String::new(),
        };
        println!("  {:<width$} {value}{ratio}{target}", row.label);
    }
}

pub(crate) fn json(name: &str, rows: &[Row]) {
    for row in rows {
        let mut object = serde_json::json!({ "benchmark": name, "label": row.label });
        match &row.value {
            Value::Time { median, p99, count } => {
                object["median_us"] = (median.as_secs_f64() * 1e6).into();
                object["p99_us"] = (p99.as_secs_f64() * 1e6).into();
                object["samples"] = (*count).into();
            }
            Value::Bytes(bytes) => object["bytes"] = (*bytes).into(),
            Value::LeftOut => object["left_out"] = true.into(),
        }
        if let Some((of, ratio)) = &row.ratio {
            object["ratio"] = (*ratio).into();
            object["ratio_of"] = of.as_str().into();
        }
        if let Some((target, met)) = &row.target {
            object["target"] = target.as_str().into();
            object["met"] = (*met).into();
        }
        println!("{object}");
    }
}
