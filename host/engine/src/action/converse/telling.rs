//! Which messages of a list are told.

use hotcell_graph::List;
use hotcell_graph::conversation::{self, Speaker};

/// The places of the messages of a list that are told, without what was said aside.
pub(super) struct Telling {
    pub(super) places: Vec<usize>,
    /// How many at the beginning are left out
    pub(super) left_out: usize,
}

impl Telling {
    /// Without the first `left_out`, and of the others no more than the last `most`, beside those that belong to the first of
    /// them. What comes before those is not looked at, so that a request costs no more in a long conversation.
    pub(super) fn of(list: &List, left_out: usize, most: Option<usize>) -> Self {
        let mut all =
            (0..list.len()).filter(|place| list.get(*place).is_some_and(|message| !conversation::is_aside(message)));
        let left_out = all.by_ref().take(left_out).count();
        let answers = |place: &usize| list.get(*place).and_then(conversation::speaker) == Some(Speaker::Tool);
        let mut places = Vec::new();
        for place in all.rev() {
            // The answers of tools are told with the call that they answer.
            if most.is_some_and(|most| places.len() >= most) && !places.last().is_some_and(answers) {
                break;
            }
            places.push(place);
        }
        places.reverse();
        Telling { places, left_out }
    }
}

#[cfg(test)]
mod tests {
    use hotcell_graph::Value;

    use super::*;

    /// A list of messages of people (`h`), models (`a`) and tools (`t`), and of what people said aside (`-`).
    fn list(speakers: &str) -> List {
        let message = |speaker: char| {
            let said = |speaker| Value::Object(conversation::message(speaker, "x"));
            match speaker {
                'h' => said(Speaker::Human),
                'a' => said(Speaker::Ai),
                't' => said(Speaker::Tool),
                _ => conversation::aside(&said(Speaker::Human)),
            }
        };
        speakers.chars().map(message).collect()
    }

    fn told(speakers: &str, left_out: usize, most: Option<usize>) -> (Vec<usize>, usize) {
        let Telling { places, left_out } = Telling::of(&list(speakers), left_out, most);
        (places, left_out)
    }

    #[test]
    fn what_was_said_aside_is_neither_told_nor_counted() {
        assert_eq!(told("h-a-h", 0, None), (vec![0, 2, 4], 0));
        assert_eq!(told("h-a-h", 0, Some(2)), (vec![2, 4], 0));
        assert_eq!(told("-h-a-h", 2, None), (vec![5], 2));
        assert_eq!(told("---", 0, None), (vec![], 0));
    }

    #[test]
    fn answers_of_tools_are_told_with_their_call() {
        assert_eq!(told("hatth", 0, Some(2)), (vec![1, 2, 3, 4], 0));
        assert_eq!(told("hat-th", 0, Some(2)), (vec![1, 2, 4, 5], 0));
        // Unless a summary stands for the call.
        assert_eq!(told("hatth", 2, Some(2)), (vec![2, 3, 4], 2));
    }

    #[test]
    fn no_more_is_left_out_than_there_is() {
        assert_eq!(told("ha-", 5, None), (vec![], 2));
        assert_eq!(told("ha", 1, Some(0)), (vec![], 1));
        assert_eq!(told("", 1, Some(1)), (vec![], 0));
    }
}
