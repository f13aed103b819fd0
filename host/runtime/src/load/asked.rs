//! On whose word an agent is loaded: whether what is granted to it counts.

use crate::revision::sources::FolderFor;

/// Who asks for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The person who runs hotcell
    Person,
    /// An agent that may call it with what is granted to it
    Agent,
    /// An agent that it does not admit, and that nobody trusts: it works without what is granted to it
    Stranger,
}

impl Asked {
    /// On whose word its folder is looked at.
    pub(crate) fn folder_for(self) -> FolderFor {
        match self {
            Asked::Person => FolderFor::Person,
            Asked::Agent | Asked::Stranger => FolderFor::Agent,
        }
    }
}
