//! Who may answer a question of a run, whichever way the answer comes in.

use hotcell_runtime::Question;
use http::StatusCode;

use crate::access::Asker;
use crate::problem::Problem;
use crate::role::Role;

/// Whoever answers, and what is known of them.
///
/// A question may be for certain people (`operator_ids`). A token of OpenID Connect says who somebody is: its subject is their name. An
/// API key is that of a program, which is trusted to say for whom it speaks. A provider of chat, or the signature of a post, vouches for
/// what it says. A question for a capability is for whoever runs the server alone.
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
}

impl<'a> Answerer<'a> {
    /// Whoever sent a request.
    pub(crate) fn of(asker: &'a Asker) -> Self {
        Answerer { asker: Some(asker), named: None, is_typed: false, is_by_hand: false, asked: None }
    }

    /// Somebody for whom something else than a key or a token vouches.
    pub(crate) fn vouched() -> Self {
        Answerer { asker: None, named: None, is_typed: false, is_by_hand: false, asked: None }
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

    /// With what the answer came: a key or a token.
    pub(crate) fn caller(&self) -> Option<&'a str> {
        self.asker.map(Asker::id)
    }

    /// By which name they answer, as far as that is known.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.asker.and_then(Asker::subject).or(self.named)
    }

    /// Whether they may answer a question. It is the only place where that is decided.
    ///
    /// # Errors
    /// Why they may not.
    pub(crate) fn check(&self, question: &Question) -> Result<(), Problem> {
        if question.denial.is_some() {
            // What is granted is decided by whoever may grant it in any other way, and who knows that this is what they do.
            let asker = self.asker.filter(|_| self.is_by_hand).ok_or_else(Problem::operator_only)?;
            return asker.require(Role::Administer);
        }
        if let Some(asker) = self.asker {
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
        let asked = self.asked.unwrap_or(&question.operator_ids);
        if asked.is_empty() {
            return Ok(());
        }
        if let (Some(subject), Some(named)) = (self.asker.and_then(Asker::subject), self.named)
            && subject != named
        {
            return Err(not_asked("`operator_id` has to be the subject of the token, or left out"));
        }
        match self.name() {
            Some(name) if asked.iter().any(|one| one == name) => Ok(()),
            Some(_) => Err(not_asked("`operator_id` has to be one of those who may answer this")),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotcell_graph::Value;
    use hotcell_runtime::{ClientCall, Question};

    use super::Answerer;
    use crate::access::{Asker, Caller, Identity, Known};
    use crate::role::Role;

    fn asker(caller: Caller, roles: &[Role]) -> Asker {
        let known = Known { caller: caller.clone(), roles: roles.to_vec(), tenant: None };
        Asker::of(&caller, &Identity::Known(Arc::new(known)))
    }

    #[test]
    fn who_may_answer_is_what_the_question_and_the_proof_say() {
        let key = asker(Caller::Key("5f0c".to_owned()), &[Role::Answer]);
        let ada = asker(Caller::subject("https://id.example.org", "ada"), &[Role::Answer]);
        let runs = asker(Caller::subject("https://id.example.org", "ada"), &[Role::Run]);
        let local = Asker::of(&Caller::Local, &Identity::Nobody);
        let anybody = Question::default();
        let certain = Question { operator_ids: vec!["ada".to_owned(), "bob".to_owned()], ..Question::default() };
        let may = |by: Answerer<'_>, question: &Question| by.check(question).is_ok();
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
        assert!(Answerer::of(&key).check(&question).is_ok());
        assert!(Answerer::of(&key).typed().check(&question).is_err());
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
            assert!(by.check(&question).is_err());
        }
        assert!(Answerer::of(&administers).by_hand().check(&question).is_ok());
        assert!(Answerer::of(&local).by_hand().check(&question).is_ok());
        assert!(Answerer::of(&administers).by_hand().check(&Question::default()).is_err());
    }

    #[test]
    fn what_another_system_is_to_answer_is_answered_by_hand_or_not_at_all() {
        let key = asker(Caller::Key("5f0c".to_owned()), &[Role::Answer]);
        let context = Value::from(&serde_json::json!({ "callback": "ship" }));
        let question = Question { context: Some(context), ..Question::default() };
        for by in [Answerer::of(&key), Answerer::of(&key).typed(), Answerer::vouched()] {
            assert!(by.check(&question).is_err());
        }
        assert!(Answerer::of(&key).by_hand().check(&question).is_ok());
    }
}
