//! What older versions wrote of the loop of an agent: all requests and calls are effects of the node's own turn, one after the
//! other. Today each request and the answers to its calls are turns of their own, below that turn.

use hotcell_budget::Account;
use hotcell_graph::Value;
use hotcell_journal::EntryPath;

use super::{AnswerState, REFUSED, Remembered};

/// What of a loop comes next.
#[derive(Clone, Copy)]
enum Next {
    /// The model is asked, in this turn
    Request(u64),
    /// Its calls are answered, in this turn
    Calls(u64),
    /// A model is asked for a value, in this turn
    Extraction(u64),
}

impl Remembered {
    /// Finds for the effects of a turn that an older version wrote the turns that would have them today; gives who used what for
    /// them. The node has that in its own account, so that nothing is counted twice.
    pub(crate) fn adopt(&mut self, turn: &EntryPath) -> Account {
        let mut used = Account::default();
        if self.effects.is_empty() && self.answers.is_empty() {
            return used;
        }
        let mut next = Next::Request(1);
        let (mut place, mut count) = (EntryPath::of_run(), 0);
        for number in 0.. {
            let old = (turn.clone(), number);
            let mut known = match self.effects.get(&old).map(|known| known.kind.as_str()) {
                // It has turns of its own and stays; a value is made of its answer.
                Some("agent") => {
                    next = Next::Extraction(1);
                    continue;
                }
                Some("model") => {
                    if let Next::Calls(of) = next {
                        next = Next::Request(of + 1);
                    }
                    self.effects.remove(&old)
                }
                Some("tool") => self.effects.remove(&old),
                Some(_) => break,
                None if self.answers.contains_key(&old) => None,
                None => break,
            };
            let here = match next {
                Next::Request(of) | Next::Calls(of) => turn.of_loop().within(of),
                Next::Extraction(of) => turn.of_extraction().within(of),
            };
            if here != place {
                (place, count) = (here, 0);
            }
            let new = (place.clone(), count);
            count += 1;
            match &mut known {
                Some(known) => {
                    used += std::mem::take(&mut known.account);
                    if known.kind == "model" {
                        next = after(next, &known.answer);
                    }
                }
                None => {
                    let answer = self.answers.remove(&old).unwrap_or(AnswerState::Open(None));
                    self.answers.insert(new.clone(), answer);
                    self.adopted.insert(old, new.clone());
                }
            }
            self.effects.extend(known.map(|known| (new, known)));
        }
        used
    }
}

/// What comes after a reply.
fn after(next: Next, reply: &Value) -> Next {
    let entry = |key: &str| reply.as_object().and_then(|reply| reply.get(key));
    let calls = entry("tool_calls").and_then(Value::as_list).is_some_and(|calls| !calls.is_empty());
    let is_silent = entry("content").and_then(Value::as_text).unwrap_or_default().trim().is_empty();
    match next {
        _ if entry(REFUSED).is_some() => next,
        Next::Request(of) if calls => Next::Calls(of + 1),
        // A reply with nothing in it was asked for again.
        Next::Request(of) if is_silent => Next::Request(of),
        Next::Request(_) => Next::Extraction(1),
        Next::Calls(of) => Next::Calls(of),
        Next::Extraction(of) => Next::Extraction(of + 2),
    }
}
