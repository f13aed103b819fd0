//! Who asks.

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Somebody at this machine, where no key was ever made
    Local,
    /// Whoever has this key
    Key(String),
    /// Nobody that is known
    Unknown,
}

impl Caller {
    pub(crate) fn id(&self) -> &str {
        match self {
            Caller::Local => "local",
            Caller::Key(id) => id,
            Caller::Unknown => "",
        }
    }
}
