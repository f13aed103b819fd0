use hotcell_plugin::Value;

#[derive(Value)]
struct Flattened {
    #[serde(flatten)]
    inner: String,
}

#[derive(Value)]
struct Skipped {
    #[serde(skip_serializing_if = "Option::is_none")]
    inner: Option<String>,
}

#[derive(Value)]
#[serde(rename_all = "Train-Case")]
struct Case {
    inner: String,
}

#[derive(Value)]
struct Pair(u8, u8);

#[derive(Value)]
enum Untagged {
    Text(String),
}

#[derive(Value)]
struct Twice {
    one: u8,
    #[value(rename = "one")]
    two: u8,
}

#[derive(Value)]
struct Generic<T> {
    inner: T,
}

#[derive(Value)]
struct Quoted {
    #[value(rename = "a\"b")]
    inner: u8,
}

fn main() {}
