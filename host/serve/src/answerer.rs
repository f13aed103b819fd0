//! Who may answer a question of a run, whichever way the answer comes in.

use std::collections::BTreeSet;

use hotcell_runtime::Question;
use http::StatusCode;

use crate::access::Asker;
use crate::groups::{Groups, LONGEST_NAME, group_of};
use crate::problem::{Problem, shown};
use crate::role::Role;

/// Whoever answers, and what is known of them.
///
/// A question may be for certain people and groups (`operator_ids`). A token of OpenID Connect says who somebody is: its subject is their
/// name, and it may say to which groups they belong. An API key is that of a program, which is trusted to say for whom it speaks. A
/// provider of chat, or the signature of a post, vouches for what it says. A question for a capability is for whoever runs the server
/// alone, and so is one for groups that nobody defined.
#[derive(Clone, Copy)]
pub(crate) struct Answerer<'a> {
    /// Who sent the request; none where something else vouches for the answer
    asker: Option<&'a Asker>,
    /// In whose name they say that they answer
    named: Option<&'a str>,
    /// Whether it is what somebody typed: no program of theirs made the call of a tool that a run may ask for
    is_typed: bool,
    /// Whether they answer in the place of another system, whose callback is waited for
    is_by_hand: bool,
    /// Who is asked at this moment, where that is not what the question says
    asked: Option<&'a [String]>,
    /// Groups that they prove to belong to
    groups: Option<&'a BTreeSet<String>>,
}

impl<'a> Answerer<'a> {
    /// Whoever sent a request.
    pub(crate) fn of(asker: &'a Asker) -> Self {
        Answerer { asker: Some(asker), groups: Some(asker.groups()), ..Answerer::vouched() }
    }

    /// Somebody for whom something else than a key or a token vouches.
    pub(crate) fn vouched() -> Self {
        Answerer { asker: None, named: None, is_typed: false, is_by_hand: false, asked: None, groups: None }
    }

    /// The same, in somebody's name.
    pub(crate) fn named(self, named: Option<&'a str>) -> Self {
        Answerer { named, ..self }
    }

    /// The same, where the answer is what a person typed.
    pub(crate) fn typed(self) -> Self {
        Answerer { is_typed: true, ..self }
    }

    /// The same, where they have chosen the question and know what it is: they may answer in the place of another system.
    pub(crate) fn by_hand(self) -> Self {
        Answerer { is_by_hand: true, ..self }
    }

    /// The same, where these are asked, in the place of those that the question names. Nobody at all means everybody.
    pub(crate) fn where_asked(self, asked: &'a [String]) -> Self {
        Answerer { asked: Some(asked), ..self }
    }

    /// The same, where they are proved to belong to these groups.
    pub(crate) fn in_groups(self, groups: Option<&'a BTreeSet<String>>) -> Self {
        Answerer { groups, ..self }
    }

    /// With what the answer came: a key or a token.
    pub(crate) fn caller(&self) -> Option<&'a str> {
        self.asker.map(Asker::id)
    }

    /// By which name they answer, as far as that is known.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.asker.and_then(Asker::subject).or(self.named)
    }

    /// The group for which they answer a question that does not name them.
    pub(crate) fn group(&self, question: &Question, groups: &Groups) -> Option<String> {
        let asked = self.asked.unwrap_or(&question.operator_ids);
        if self.is_named(asked) {
            return None;
        }
        asked.iter().filter_map(|one| group_of(one)).find(|group| self.is_in(group, groups)).map(str::to_owned)
    }

    /// Whether a list of people has them by their name. What stands for a group is nobody's name.
    fn is_named(&self, asked: &[String]) -> bool {
        self.name().is_some_and(|name| asked.iter().any(|one| one == name && group_of(one).is_none()))
    }

    /// Whether they belong to a group.
    fn is_in(&self, group: &str, groups: &Groups) -> bool {
        self.groups.is_some_and(|own| own.contains(group)) || self.name().is_some_and(|name| groups.has(group, name))
    }

    /// Whether they run the server and have chosen the question.
    fn runs_the_server(&self) -> bool {
        self.is_by_hand && self.asker.is_some_and(|asker| asker.require(Role::Administer).is_ok())
    }

    /// Whether they may answer a question. It is the only place where that is decided.
    ///
    /// # Errors
    /// Why they may not.
    pub(crate) fn check(&self, question: &Question, groups: &Groups) -> Result<(), Problem> {
        if self.named.is_some_and(|named| named.len() > LONGEST_NAME) {
            return Err(Problem::unprocessable(format!("`operator_id` has at most {LONGEST_NAME} bytes")));
        }
        if question.denial.is_some() {
            // What is granted is decided by whoever may grant it in any other way, and who knows that this is what they do.
            let asker = self.asker.filter(|_| self.is_by_hand).ok_or_else(Problem::operator_only)?;
            return asker.require(Role::Administer);
        }
        let asked = self.asked.unwrap_or(&question.operator_ids);
        // Nobody else can answer it. Whoever runs the server could define the group as well.
        let stands_in = groups.is_nobody(asked) && self.runs_the_server();
        if let Some(asker) = self.asker.filter(|_| !stands_in) {
            asker.require(Role::Answer)?;
        }
        if self.is_typed && question.call.is_some() {
            let detail = "the question asks a program to call a tool; answer it with `POST /runs/{run_id}/answers`";
            return Err(not_asked(detail));
        }
        if !self.is_by_hand && question.callback().is_some() {
            let detail = "another system answers this by its callback; `POST /runs/{run_id}/answers` does so by hand";
            return Err(not_asked(detail));
        }
        if asked.is_empty() {
            return Ok(());
        }
        if let (Some(subject), Some(named)) = (self.asker.and_then(Asker::subject), self.named)
            && subject != named
        {
            return Err(not_asked("`operator_id` has to be the subject of the token, or left out"));
        }
        if stands_in || self.is_named(asked) || self.group(question, groups).is_some() {
            return Ok(());
        }
        if groups.is_nobody(asked) {
            return Err(undefined(&groups.undefined(asked)));
        }
        match self.name() {
            Some(_) => {
                Err(not_asked("`operator_id` has to be one of those who may answer this, or in one of their groups"))
            }
            None => Err(not_asked(
                "the question is for certain people, and who answers is not known; say it with `operator_id` of \
                 `POST /runs/{run_id}/answers`",
            )),
        }
    }
}

fn not_asked(detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, detail).kind("not-asked", "Somebody else is asked")
}

/// The question is for groups that nobody defined.
fn undefined(groups: &[&str]) -> Problem {
    // A list may have many, and an error is short.
    let shown: Vec<String> = groups.iter().take(5).map(|group| format!("`{}`", shown(group))).collect();
    let detail = format!(
        "the question is for a group that is not defined: {}; until it is, only someone with the role `administer` can answer it, with \
         `POST /runs/{{run_id}}/answers`",
        shown.join(", ")
    );
    Problem::new(StatusCode::FORBIDDEN, detail).kind("undefined-group", "The group is not defined")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotcell_graph::Value;
    use hotcell_runtime::{ClientCall, Question};

    use super::Answerer;
    use crate::access::{Asker, Caller, Identity, Known};
    use crate::groups::Groups;
    use crate::problem::Problem;
    use crate::role::Role;

    fn asker(caller: Caller, roles: &[Role]) -> Asker {
        asker_in(caller, roles, &[])
    }

    fn asker_in(caller: Caller, roles: &[Role], groups: &[&str]) -> Asker {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let known = Known { caller: caller.clone(), roles: roles.to_vec(), groups: Arc::new(groups), tenant: None };
        Asker::of(&caller, &Identity::Known(Arc::new(known)))
    }

    /// Whether somebody may answer where no groups are defined.
    fn check(by: Answerer<'_>, question: &Question) -> Result<(), Problem> {
        by.check(question, &Groups::default())
    }

    fn finance(members: &[&str]) -> Groups {
        let members: Vec<String> = members.iter().map(|member| (*member).to_owned()).collect();
        Groups::of([("finance".to_owned(), members)]).expect("groups")
    }

    #[test]
    fn a_group_stands_for_its_members_and_for_nobody_else() {
        let key = asker(Caller::Key("5f0c".to_owned()), &[Role::Answer]);
        let token = |subject: &str, groups: &[&str]| {
            asker_in(Caller::subject("https://id.example.org", subject), &[Role::Answer], groups)
        };
        let (ada, bob, eve) =
            (token("ada", &[]), token("bob", &["finance"]), token("eve", &["Finance", "group:finance"]));
        let named_like_it = token("group:finance", &[]);
        let groups = finance(&["ada"]);
        let list = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        for asked in [&["group:finance"][..], &["ann", "group:finance", "group:finance"]] {
            let question = Question { operator_ids: list(asked), ..Question::default() };
            let may = |by: Answerer<'_>| by.check(&question, &groups).is_ok();
            assert!(may(Answerer::of(&ada)) && may(Answerer::of(&bob)) && may(Answerer::of(&bob).named(Some("bob"))));
            for by in [Answerer::of(&key), Answerer::vouched()] {
                assert!(may(by.named(Some("ada"))) && !may(by));
                // What a token would say of somebody is not known where none is shown.
                for other in ["bob", "eve", "finance", "group:finance"] {
                    assert!(!may(by.named(Some(other))), "{other}");
                }
            }
            for other in [&eve, &named_like_it] {
                assert!(!may(Answerer::of(other)) && !may(Answerer::of(other).by_hand()));
            }
            assert!(!may(Answerer::of(&eve).named(Some("ada"))), "a token says who somebody is");
            assert!(may(Answerer::vouched().named(Some("bob")).in_groups(Some(bob.groups()))));
            assert_eq!(Answerer::of(&bob).group(&question, &groups).as_deref(), Some("finance"));
        }
        let question = Question { operator_ids: list(&["group:finance", "ada"]), ..Question::default() };
        assert_eq!(Answerer::of(&ada).group(&question, &groups), None, "she is asked by her name");
        let (now, question) = (list(&["group:finance"]), Question::default());
        assert!(Answerer::of(&eve).where_asked(&now).check(&question, &groups).is_err());
        assert!(Answerer::of(&ada).where_asked(&now).check(&question, &groups).is_ok());
    }

    #[test]
    fn what_nobody_is_asked_whoever_runs_the_server_answers_by_hand() {
        let key = |roles: &[Role]| asker(Caller::Key("5f0c".to_owned()), roles);
        let (others, administers) = (key(&[Role::Run, Role::Answer, Role::Operate]), key(&[Role::Administer]));
        let local = Asker::of(&Caller::Local, &Identity::Nobody);
        let question = Question { operator_ids: vec!["group:finance".to_owned()], ..Question::default() };
        for by in [Answerer::of(&administers).by_hand(), Answerer::of(&local).by_hand()] {
            assert!(check(by, &question).is_ok());
            assert!(by.check(&question, &finance(&["ada"])).is_err(), "as soon as there is somebody, they are asked");
        }
        for by in [
            Answerer::of(&others).by_hand(),
            Answerer::of(&others).by_hand().named(Some("group:finance")),
            Answerer::of(&administers).typed(),
            Answerer::of(&local),
            Answerer::vouched().by_hand().named(Some("ada")),
        ] {
            assert_eq!(check(by, &question).map_err(|problem| problem.status), Err(403));
        }
        let told = check(Answerer::of(&others).by_hand(), &question).expect_err("refused");
        assert!(told.kind.ends_with("undefined-group") && told.detail.contains("`finance`"), "{told:?}");
        // Where somebody is asked besides, they answer.
        let question = Question { operator_ids: vec!["group:finance".to_owned(), "ada".to_owned()], ..question };
        assert!(check(Answerer::of(&administers).by_hand(), &question).is_err());
        assert!(check(Answerer::of(&others).named(Some("ada")), &question).is_ok());
    }

    #[test]
    fn a_name_has_a_length() {
        let key = asker(Caller::Key("5f0c".to_owned()), &[Role::Answer]);
        let (name, longer) = ("x".repeat(255), "x".repeat(256));
        assert!(check(Answerer::of(&key).named(Some(&name)), &Question::default()).is_ok());
        let refused = check(Answerer::of(&key).named(Some(&longer)), &Question::default());
        assert_eq!(refused.map_err(|problem| problem.status), Err(422));
    }

    #[test]
    fn who_may_answer_is_what_the_question_and_the_proof_say() {
        let key = asker(Caller::Key("5f0c".to_owned()), &[Role::Answer]);
        let ada = asker(Caller::subject("https://id.example.org", "ada"), &[Role::Answer]);
        let runs = asker(Caller::subject("https://id.example.org", "ada"), &[Role::Run]);
        let local = Asker::of(&Caller::Local, &Identity::Nobody);
        let anybody = Question::default();
        let certain = Question { operator_ids: vec!["ada".to_owned(), "bob".to_owned()], ..Question::default() };
        let may = |by: Answerer<'_>, question: &Question| check(by, question).is_ok();
        for by in [Answerer::of(&key), Answerer::of(&ada), Answerer::of(&local), Answerer::vouched()] {
            assert!(may(by, &anybody) && may(by.named(Some("eve")), &anybody));
        }
        assert!(!may(Answerer::of(&runs), &anybody) && !may(Answerer::of(&runs), &certain));
        for by in [Answerer::of(&key), Answerer::of(&local), Answerer::vouched()] {
            assert!(
                !may(by, &certain) && !may(by.named(Some("eve")), &certain) && may(by.named(Some("bob")), &certain)
            );
        }
        // A token says who somebody is, and they are nobody else.
        let by = Answerer::of(&ada);
        assert!(may(by, &certain) && may(by.named(Some("ada")), &certain) && !may(by.named(Some("bob")), &certain));
        let (now, nobody): (_, [String; 0]) = (["bob".to_owned()], []);
        assert!(!may(by.where_asked(&now), &certain) && may(by.where_asked(&nobody), &certain));
    }

    #[test]
    fn what_somebody_typed_is_no_result_of_a_tool() {
        let key = asker(Caller::Key("5f0c".to_owned()), &[Role::Answer]);
        let call = ClientCall { tool: "pay".to_owned(), arguments: Value::Null };
        let question = Question { call: Some(call), ..Question::default() };
        assert!(check(Answerer::of(&key), &question).is_ok());
        assert!(check(Answerer::of(&key).typed(), &question).is_err());
    }

    #[test]
    fn what_is_granted_is_decided_by_whoever_administers_and_by_hand() {
        let key = |roles: &[Role]| asker(Caller::Key("5f0c".to_owned()), roles);
        let (others, administers) = (key(&[Role::Run, Role::Answer, Role::Operate]), key(&[Role::Administer]));
        let local = Asker::of(&Caller::Local, &Identity::Nobody);
        let question = Question { denial: Some(Value::Null), ..Question::default() };
        for by in [
            Answerer::of(&others).by_hand(),
            Answerer::of(&administers),
            Answerer::of(&administers).typed(),
            Answerer::of(&local),
            Answerer::vouched(),
            Answerer::vouched().by_hand(),
        ] {
            assert!(check(by, &question).is_err());
        }
        assert!(check(Answerer::of(&administers).by_hand(), &question).is_ok());
        assert!(check(Answerer::of(&local).by_hand(), &question).is_ok());
        assert!(check(Answerer::of(&administers).by_hand(), &Question::default()).is_err());
    }

    #[test]
    fn what_another_system_is_to_answer_is_answered_by_hand_or_not_at_all() {
        let key = asker(Caller::Key("5f0c".to_owned()), &[Role::Answer]);
        let context = Value::from(&serde_json::json!({ "callback": "ship" }));
        let question = Question { context: Some(context), ..Question::default() };
        for by in [Answerer::of(&key), Answerer::of(&key).typed(), Answerer::vouched()] {
            assert!(check(by, &question).is_err());
        }
        assert!(check(Answerer::of(&key).by_hand(), &question).is_ok());
    }
}
