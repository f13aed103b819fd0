//! Leaving the oldest messages of a conversation out of what a model is told.

use std::ops::Range;

use hotcell_graph::ir::Window;
use hotcell_models::{Message, Role};

/// Leaves out the oldest messages of lists until the rest fits the window, or nothing but the last message and what belongs to
/// it is left. `listed` are the places of the messages that come from lists.
pub(super) fn trim(window: &Window, messages: &mut Vec<Message>, listed: &[Range<usize>]) {
    let mut total: usize = messages.iter().map(estimate).sum();
    let is_listed = |place: usize| listed.iter().any(|range| range.contains(&place));
    let last = messages.len().saturating_sub(1);
    let mut is_left_out = vec![false; messages.len()];
    let mut place = 0;
    while total > window.tokens && place < last {
        // A message that calls tools goes with their answers, which mean nothing without it.
        let mut after = place + 1;
        while after <= last && is_listed(after) && messages[after].role == Role::Tool {
            after += 1;
        }
        if is_listed(place) && after <= last {
            for (left_out, message) in is_left_out[place..after].iter_mut().zip(&messages[place..after]) {
                *left_out = true;
                total -= estimate(message);
            }
        }
        place = after;
    }
    let mut left_out = is_left_out.into_iter();
    messages.retain(|_| !left_out.next().unwrap_or_default());
}

/// About how many tokens a message has: a token is about four bytes of text.
fn estimate(message: &Message) -> usize {
    let calls: usize = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    4 + (message.content.len() + calls).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use hotcell_models::ToolCallRequest;

    use super::*;

    /// A message of 14 tokens.
    fn long(role: Role, name: char) -> Message {
        let content = name.to_string().repeat(40);
        Message { role, ..Message::user(content) }
    }

    fn left(tokens: usize, messages: &[Message], listed: Range<usize>) -> String {
        let mut messages = messages.to_vec();
        trim(&Window { tokens }, &mut messages, &[listed]);
        messages.iter().filter_map(|message| message.content.chars().next()).collect()
    }

    #[test]
    fn the_oldest_messages_go_first_and_texts_that_are_no_conversation_stay() {
        let messages =
            [long(Role::System, 's'), long(Role::User, 'a'), long(Role::Assistant, 'b'), long(Role::User, 'c')];
        let said = || 1..4;
        assert_eq!(left(56, &messages, said()), "sabc");
        assert_eq!(left(55, &messages, said()), "sbc");
        assert_eq!(left(30, &messages, said()), "sc");
        assert_eq!(left(0, &messages, said()), "sc");
        assert_eq!(left(0, &messages, 0..0), "sabc");
    }

    #[test]
    fn the_answer_of_a_tool_goes_with_its_call() {
        let call = ToolCallRequest { id: "1".into(), name: "look".into(), arguments: "{}".into() };
        let calls = Message { tool_calls: vec![call], ..long(Role::Assistant, 'b') };
        let messages =
            [long(Role::User, 'a'), calls, long(Role::Tool, 't'), long(Role::Tool, 'u'), long(Role::User, 'c')];
        assert_eq!(left(60, &messages, 0..5), "btuc");
        assert_eq!(left(50, &messages, 0..5), "c");
        // What the model is to answer now stays with what it is about.
        assert_eq!(left(10, &messages[..4], 0..4), "btu");
    }
}
