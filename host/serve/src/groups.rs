//! Groups of people: who belongs to which of them.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

/// What begins the entry of a list of people that names a group.
const PREFIX: &str = "group:";
/// Bytes of the longest name of a group, or of somebody.
pub(crate) const LONGEST_NAME: usize = 255;
/// Groups that somebody may define.
const MOST_GROUPS: usize = 1_000;
/// People that a group may have.
const MOST_MEMBERS: usize = 10_000;

/// Groups of people, as whoever runs a server defines them. A list of those who may answer a question names one as `group:NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    members: BTreeMap<String, BTreeSet<String>>,
    /// Groups that tokens may say somebody belongs to
    of_tokens: BTreeSet<String>,
    /// Whether tokens may say so of any group
    any_of_tokens: bool,
}

/// Why groups cannot be defined so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotGroups {
    /// There are too many
    #[error("there may be {MOST_GROUPS} groups at most")]
    TooMany,
    /// A group cannot be called so
    #[error(
        "`{0}` is not a valid name of a group: a name has 1 to {LONGEST_NAME} bytes, no control characters, and no white space at its ends"
    )]
    Name(String),
    /// Two groups have the same name
    #[error("the group `{0}` is defined twice")]
    Twice(String),
    /// Nobody belongs to a group
    #[error("the group `{0}` has no members; leave it out")]
    Empty(String),
    /// Too many people belong to a group
    #[error("the group `{0}` has more than {MOST_MEMBERS} members")]
    TooLarge(String),
    /// Somebody who belongs to a group cannot be called so
    #[error(
        "`{member}` in the group `{group}` is not a valid name of a person: a name has 1 to {LONGEST_NAME} bytes, no control characters, no \
         white space at its ends, and does not begin with `{PREFIX}`"
    )]
    Member {
        /// The group
        group: String,
        /// What is no name
        member: String,
    },
}

impl Groups {
    /// Groups, each with the names of those who belong to it.
    ///
    /// # Errors
    /// Why they cannot be defined so.
    pub fn of(groups: impl IntoIterator<Item = (String, Vec<String>)>) -> Result<Self, NotGroups> {
        let mut members: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (group, people) in groups {
            if !is_name(&group) {
                return Err(NotGroups::Name(shown(&group)));
            }
            if people.is_empty() {
                return Err(NotGroups::Empty(group));
            }
            if people.len() > MOST_MEMBERS {
                return Err(NotGroups::TooLarge(group));
            }
            if let Some(member) = people.iter().find(|one| !is_name(one) || group_of(one).is_some()) {
                return Err(NotGroups::Member { member: shown(member), group });
            }
            if members.len() >= MOST_GROUPS {
                return Err(NotGroups::TooMany);
            }
            if members.contains_key(&group) {
                return Err(NotGroups::Twice(group));
            }
            members.insert(group, people.into_iter().collect());
        }
        Ok(Groups { members, ..Groups::default() })
    }

    /// The same, where tokens may say of these that somebody belongs to them.
    pub(crate) fn with_tokens_of<'g>(mut self, groups: impl IntoIterator<Item = &'g String>) -> Self {
        self.of_tokens.extend(groups.into_iter().cloned());
        self
    }

    /// The same, where tokens may say of any group that somebody belongs to it.
    pub(crate) fn with_any_of_tokens(self) -> Self {
        Groups { any_of_tokens: true, ..self }
    }

    /// Whether somebody belongs to a group, as far as it is defined here: what their token says of it comes on top.
    pub(crate) fn has(&self, group: &str, person: &str) -> bool {
        self.members.get(group).is_some_and(|members| members.contains(person))
    }

    /// Whether there is somebody who may belong to a group.
    pub(crate) fn is_defined(&self, group: &str) -> bool {
        self.any_of_tokens || self.members.contains_key(group) || self.of_tokens.contains(group)
    }

    /// The groups of a list of people that nobody defined, each once.
    pub(crate) fn undefined<'q>(&self, asked: &'q [String]) -> Vec<&'q str> {
        groups_of(asked).into_iter().filter(|group| !self.is_defined(group)).collect()
    }

    /// Whether a list of people has nothing but groups that nobody defined, so that nobody is on it.
    pub(crate) fn is_nobody(&self, asked: &[String]) -> bool {
        !asked.is_empty() && asked.iter().all(|one| group_of(one).is_some_and(|group| !self.is_defined(group)))
    }
}

/// The group that an entry of a list of people names, if it names one.
pub(crate) fn group_of(entry: &str) -> Option<&str> {
    entry.strip_prefix(PREFIX)
}

/// The groups of a list of people, in its order and each once.
pub(crate) fn groups_of(asked: &[String]) -> Vec<&str> {
    let mut known = BTreeSet::new();
    asked.iter().filter_map(|one| group_of(one)).filter(|group| known.insert(*group)).collect()
}

/// Whether a group or somebody can be called so.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len()) && text.trim() == text && !text.contains(char::is_control)
}

/// What is no name, as an error shows it.
fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::{Groups, LONGEST_NAME, MOST_GROUPS, MOST_MEMBERS, NotGroups, groups_of};

    fn group(name: &str, members: &[&str]) -> (String, Vec<String>) {
        (name.to_owned(), texts(members))
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn a_group_has_members_and_a_name_and_there_are_so_many() {
        let long = "x".repeat(LONGEST_NAME);
        let all =
            [group("finance", &["ada", "bob", "ada"]), group("Ops: night, zone 7", &["ada"]), group(&long, &[&long])];
        let groups = Groups::of(all).expect("groups");
        assert!(groups.has("finance", "ada") && groups.has("finance", "bob") && groups.has(&long, &long));
        assert!(!groups.has("finance", "Ada") && !groups.has("Finance", "ada") && !groups.has("none", "ada"));
        assert!(Groups::of((0..MOST_GROUPS).map(|number| group(&number.to_string(), &["ada"]))).is_ok());
        let longer = "x".repeat(LONGEST_NAME + 1);
        for (wrong, is) in [
            (vec![group("", &["ada"])], NotGroups::Name(String::new())),
            (vec![group(" a", &["ada"])], NotGroups::Name(" a".to_owned())),
            (vec![group("a\nb", &["ada"])], NotGroups::Name("a\\nb".to_owned())),
            (vec![group(&longer, &["ada"])], NotGroups::Name("x".repeat(100))),
            (vec![group("a", &[])], NotGroups::Empty("a".to_owned())),
            (vec![group("a", &["ada"]), group("a", &["bob"])], NotGroups::Twice("a".to_owned())),
        ] {
            assert_eq!(Groups::of(wrong), Err(is));
        }
        for member in ["", " ada", "group:other", "group:", "a\0", &longer] {
            let refused = Groups::of([group("a", &["bob", member])]);
            assert!(matches!(refused, Err(NotGroups::Member { .. })), "{member}: {refused:?}");
        }
        let people = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert!(Groups::of([("a".to_owned(), people(MOST_MEMBERS))]).is_ok());
        let refused = Groups::of([("a".to_owned(), people(MOST_MEMBERS + 1))]);
        assert_eq!(refused, Err(NotGroups::TooLarge("a".to_owned())));
        let refused = Groups::of((0..=MOST_GROUPS).map(|number| group(&number.to_string(), &["ada"])));
        assert_eq!(refused, Err(NotGroups::TooMany));
    }

    #[test]
    fn a_list_that_names_only_undefined_groups_is_for_nobody() {
        let own = Groups::of([group("finance", &["ada"])]).expect("groups").with_tokens_of(&texts(&["audit"]));
        for (asked, undefined, is_nobody) in [
            (&[][..], &[][..], false),
            (&["ann"], &[], false),
            (&["group:finance", "group:audit"], &[], false),
            (&["group:legal", "group:legal", "group:", "group:Finance"], &["legal", "", "Finance"], true),
            (&["ann", "group:legal"], &["legal"], false),
            (&["group:legal", "group:finance"], &["legal"], false),
        ] {
            let asked = texts(asked);
            assert_eq!((own.undefined(&asked), own.is_nobody(&asked)), (undefined.to_vec(), is_nobody), "{asked:?}");
            let any = own.clone().with_any_of_tokens();
            assert!(any.undefined(&asked).is_empty() && !any.is_nobody(&asked), "{asked:?}");
        }
        assert_eq!(groups_of(&texts(&["group:b", "ann", "group:a", "group:b"])), ["b", "a"]);
        assert_eq!(Groups::default().undefined(&texts(&["group:finance"])), ["finance"]);
    }
}
