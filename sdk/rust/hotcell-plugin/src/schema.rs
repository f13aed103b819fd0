//! What a value looks like, as data that exists at compile time: rendered into the description, and put into words
//! when an argument does not fit.

/// The form of a value.
///
/// Texts named `description` are the inside of a JSON string, escaped by the macros; names need no escape.
#[derive(Debug)]
pub enum Schema {
    /// Any JSON value.
    Any,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer {
        /// The smallest, where the type has one worth saying.
        minimum: Option<i64>,
        /// The largest, where the type has one worth saying.
        maximum: Option<i64>,
    },
    /// Any number.
    Number,
    /// A text.
    Text,
    /// Exactly this text.
    Constant(&'static str),
    /// One of some texts.
    Choice {
        /// What the choice is about, and what each text means.
        description: &'static str,
        /// The texts.
        texts: &'static [&'static str],
    },
    /// A list of values of one form.
    List(&'static Schema),
    /// An object with any names and values of one form.
    Map(&'static Schema),
    /// A value or `null`.
    Nullable(&'static Schema),
    /// An object with known names.
    Object(Object),
    /// A value that fits one of several forms.
    OneOf {
        /// What the forms have in common.
        description: &'static str,
        /// The forms.
        forms: &'static [Schema],
    },
}

/// An object with known names.
#[derive(Debug)]
pub struct Object {
    /// What it is.
    pub description: &'static str,
    /// What may be in it, in the order of declaration.
    pub fields: &'static [Field],
    /// Whether further names are ignored instead of refused.
    pub open: bool,
}

/// One name of an object.
#[derive(Debug)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Whether it has to be there.
    pub required: bool,
    /// What holds when it is not there, as JSON; empty where that is not said.
    pub default: &'static str,
    /// The form of its value.
    pub schema: &'static Schema,
}

impl Schema {
    /// The form in words: what has to stand there.
    pub fn words(&self) -> String {
        match self {
            Self::Any => "any value".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer { minimum: Some(minimum), maximum: Some(maximum) } => {
                format!("a whole number from {minimum} to {maximum}")
            }
            Self::Integer { minimum: Some(minimum), maximum: None } => format!("a whole number, at least {minimum}"),
            Self::Integer { minimum: None, maximum: Some(maximum) } => format!("a whole number, at most {maximum}"),
            Self::Integer { minimum: None, maximum: None } => "a whole number".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Constant(text) => format!("the text `{text}`"),
            Self::Choice { texts, .. } => format!("one of {}", listed(texts.iter().copied())),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) | Self::Object(_) => "an object".to_owned(),
            Self::Nullable(inner) => format!("{} or null", inner.words()),
            Self::OneOf { forms, .. } => {
                let all: Vec<String> = forms.iter().map(Self::words).collect();
                if all.windows(2).all(|pair| pair[0] == pair[1]) {
                    all.into_iter().next().unwrap_or_default()
                } else {
                    all.join(" or ")
                }
            }
        }
    }
}

/// Names in backticks, with commas.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
