//! Who asks.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;

use crate::problem::Problem;
use crate::role::Role;
use crate::tenant_name::TenantName;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Somebody at this machine, where no key was ever made
    Local,
    /// Whoever has this key
    Key(String),
    /// Whoever has a token about themselves
    Subject {
        /// Who issued it
        issuer: String,
        /// Whom it is about
        subject: String,
        /// Both
        id: String,
    },
    /// Nobody that is known
    Unknown,
}

impl Caller {
    pub(crate) fn subject(issuer: &str, subject: &str) -> Self {
        let id = format!("{issuer} {subject}");
        Caller::Subject { issuer: issuer.to_owned(), subject: subject.to_owned(), id }
    }

    pub(crate) fn id(&self) -> &str {
        match self {
            Caller::Local => "local",
            Caller::Key(id) | Caller::Subject { id, .. } => id,
            Caller::Unknown => "",
        }
    }
}

/// What a request proves about who sent it. Whether that is enough for a route is decided where the route is known.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// It shows nothing
    Nobody,
    /// It shows something that proves nothing here
    Wrong,
    /// It is from somebody who is known
    Known(Arc<Known>),
    /// It cannot be found out at this moment
    Unclear(Problem),
}

/// Somebody who is known.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) caller: Caller,
    pub(crate) roles: Vec<Role>,
    /// The groups that their token says they belong to
    pub(crate) groups: Arc<BTreeSet<String>>,
    /// The tenant that they belong to; none on a server without tenants
    pub(crate) tenant: Option<TenantName>,
}

/// Whoever was let in, with what they may do.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    id: String,
    /// Whom their token is about
    subject: Option<String>,
    /// None where nobody is asked who they are, and everybody may do everything
    roles: Option<Vec<Role>>,
    /// The groups that their token says they belong to
    groups: Arc<BTreeSet<String>>,
}

impl Asker {
    /// Somebody who was let in because of this.
    pub(crate) fn of(caller: &Caller, identity: &Identity) -> Self {
        let (roles, groups) = match identity {
            Identity::Known(known) => (Some(known.roles.clone()), known.groups.clone()),
            _ => (None, Arc::default()),
        };
        let subject = match caller {
            Caller::Subject { subject, .. } => Some(subject.clone()),
            _ => None,
        };
        Asker { id: caller.id().to_owned(), subject, roles, groups }
    }

    /// What they are known by.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Who they are, if they have a token that says so.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// The groups that their token says they belong to.
    pub(crate) fn groups(&self) -> &BTreeSet<String> {
        &self.groups
    }

    /// Whether they may remove a run beside what they ask for. Who may begin runs may cancel every run, which keeps what it did, and
    /// remove none.
    ///
    /// # Errors
    /// When they may not.
    pub(crate) fn may_remove_runs(&self) -> Result<(), Problem> {
        self.require(Role::Operate)
    }

    /// Whether they may do what a role allows, besides what the route that was asked needs.
    ///
    /// # Errors
    /// When they may not.
    pub(crate) fn require(&self, role: Role) -> Result<(), Problem> {
        if self.roles.as_ref().is_none_or(|roles| roles.contains(&role)) {
            return Ok(());
        }
        let word = role.as_str();
        let detail = format!("the key or token lacks the role that this needs: {word}");
        Err(Problem::new(StatusCode::FORBIDDEN, detail).with("roles", vec![word]))
    }
}
