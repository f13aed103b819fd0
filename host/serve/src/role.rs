//! What whoever asks may do.

use std::str::FromStr;

/// What whoever asks has to be allowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Begin runs, and see what comes of them
    Run,
    /// Answer questions
    Answer,
    /// See everything, and remove what has ended
    Operate,
    /// Decide who may do what
    Administer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Role::Run, Role::Answer, Role::Operate, Role::Administer];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Run => "run",
            Role::Answer => "answer",
            Role::Operate => "operate",
            Role::Administer => "administer",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = || Role::ALL.map(Role::as_str).join(", ");
        Role::ALL.into_iter().find(|role| role.as_str() == word).ok_or_else(|| format!("a role is one of {}", all()))
    }
}
