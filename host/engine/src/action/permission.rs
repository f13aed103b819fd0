//! A call that was denied a capability is made again, from its beginning, when whoever runs this grants it.
//!
//! What a call was denied is committed with what came of it, before anybody is asked, so that a turn that is repeated asks the same. Every
//! further try is an effect of its own.

use hotcell_budget::Account;
use hotcell_graph::{Key, List, Object, Value};
use hotcell_journal::{EntryPath, Question};

use crate::call_site::CallSite;
use crate::context::Interruption;
use crate::memory::Deed;
use crate::permit::{Denials, Denied, MOST_OF_RUN, Permit, PermitScope};
use crate::ports::Notice;
use crate::turn::NodeTurn;

/// The member of what came of a call that says what it was denied.
const DENIED: &str = "denied";
/// The member of what came of a grant that is not written down.
const ERROR: &str = "error";
/// Capabilities that are asked for after one try of a call.
const MOST: usize = 8;

/// What one call is granted while it is made again and again.
pub(super) struct Permits {
    /// Whether what it is denied is asked for
    asks: bool,
    given: Vec<Permit>,
}

impl Permits {
    /// What the run was granted before.
    pub(super) fn of(turn: &NodeTurn) -> Self {
        let asks = turn.context.ports.tools.asks_denials();
        let given = if asks { turn.context.remembered().denials.permits().to_vec() } else { Vec::new() };
        Permits { asks, given }
    }

    /// Where the call is made the next time.
    pub(super) fn site(&self, turn: &NodeTurn) -> CallSite {
        if !self.asks {
            return turn.site();
        }
        let refused = turn.context.remembered().denials.refused().to_vec();
        turn.site().asking(self.given.clone(), refused)
    }

    /// Asks for everything that the call was denied, as what came of it says. True if the call is to be made again.
    pub(super) async fn ask(&mut self, turn: &mut NodeTurn, outcome: &Value) -> Result<bool, Interruption> {
        let denied = outcome.as_object().and_then(|outcome| outcome.get(DENIED)).and_then(Value::as_list);
        let Some(denied) = denied else { return Ok(false) };
        // Nearly every call was denied nothing, and has no room for questions.
        Box::pin(self.ask_for(turn, denied)).await
    }

    async fn ask_for(&mut self, turn: &mut NodeTurn, denied: &List) -> Result<bool, Interruption> {
        let denied: Vec<Denied> = denied.iter().filter_map(read).take(MOST).collect();
        let mut is_made_again = false;
        for denied in denied {
            is_made_again |= self.decide(turn, denied).await?;
        }
        Ok(is_made_again)
    }

    async fn decide(&mut self, turn: &mut NodeTurn, denied: Denied) -> Result<bool, Interruption> {
        let at = turn.next_place();
        if !self.may_ask(turn, &at, &denied) {
            return Ok(false);
        }
        let Denied { text, denial } = denied;
        let options = Question::DECISIONS.map(str::to_owned).into();
        let node = turn.node.to_string();
        let question = Question { node, text, options, denial: Some(denial.clone()), ..Question::default() };
        let answer = turn.ask(question).await?;
        let is_of_other = {
            let mut remembered = turn.context.remembered();
            remembered.denials.note_answer(&at, &answer);
            remembered.denials.is_of_other(&at)
        };
        let Some(scope) = PermitScope::of_decision(&answer) else { return Ok(false) };
        if scope == PermitScope::Always {
            keep(turn, &denial, is_of_other).await?;
        }
        // A fork does again what its entries say, and asks for itself what the other run was granted.
        if !is_of_other {
            self.given.retain(|known| known.denial != denial);
            self.given.push(Permit { denial, scope: PermitScope::Once });
        }
        Ok(true)
    }

    /// Whether a question is put there: it was put before, or there is room for one more.
    fn may_ask(&self, turn: &NodeTurn, at: &(EntryPath, u32), denied: &Denied) -> bool {
        {
            let mut remembered = turn.context.remembered();
            if remembered.denials.was_asked(at) {
                return true;
            }
            // In a turn that is repeated, something else came next.
            if !self.asks || remembered.has_effect(at) {
                return false;
            }
            if remembered.denials.has_room() {
                remembered.denials.note_asked(at.clone(), denied.denial.clone());
                return true;
            }
        }
        let text =
            format!("{}; nobody is asked, because a run asks for {MOST_OF_RUN} capabilities at most", denied.text);
        turn.context.notice(&turn.node, &[Notice { text, help: None }]);
        false
    }
}

/// Has a grant written down that is for all runs. One that cannot be written is for this call alone.
async fn keep(turn: &mut NodeTurn, denial: &Value, is_of_other: bool) -> Result<(), Interruption> {
    let deed = Deed::new("grant", "capability", &[&denial.to_json()]);
    if is_of_other {
        turn.recall(&deed)?;
        return Ok(());
    }
    let granted = denial.clone();
    let outcome = turn
        .effect(deed, |context| async move {
            let (key, value) = match context.ports.tools.keep_grant(&granted).await {
                Ok(()) => ("kept", Value::Bool(true)),
                Err(error) => (ERROR, Value::text(error.to_string())),
            };
            (Account::default(), Ok(Value::Object([(Key::from(key), value)].into_iter().collect::<Object>())))
        })
        .await?;
    if let Some(error) = outcome.as_object().and_then(|outcome| outcome.get(ERROR)) {
        let text = format!("what was granted for always is granted for this call alone: {}", error.to_display());
        turn.context.notice(&turn.node, &[Notice { text, help: None }]);
    }
    Ok(())
}

/// What came of a call that came to its end, with what it was denied.
pub(super) fn with_denied(outcome: Value, denials: Option<&Denials>) -> Value {
    match (denials.and_then(written), outcome) {
        (Some(denied), Value::Object(mut outcome)) => {
            outcome.insert(DENIED, denied);
            Value::Object(outcome)
        }
        (_, outcome) => outcome,
    }
}

/// The same of a call whose result is not committed; none if it was denied nothing that is asked for.
pub(super) fn only_denied(denials: Option<&Denials>) -> Option<Value> {
    let denied = denials.and_then(written)?;
    Some(Value::Object([(Key::from(DENIED), denied)].into_iter().collect::<Object>()))
}

fn written(denials: &Denials) -> Option<Value> {
    let one = |Denied { text, denial }: Denied| {
        let entries = [(Key::from("text"), Value::text(text)), (Key::from("denial"), denial)];
        Value::Object(entries.into_iter().collect::<Object>())
    };
    let denied = denials.take();
    (!denied.is_empty()).then(|| Value::List(denied.into_iter().take(MOST).map(one).collect()))
}

fn read(value: &Value) -> Option<Denied> {
    let object = value.as_object()?;
    Some(Denied { text: object.get("text")?.to_display().into_owned(), denial: object.get("denial")?.clone() })
}
