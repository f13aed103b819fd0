//! What the graphs of a map begin with, and what is made of what they give.

use hotcell_graph::ir::{Collect, GraphItems, Iterate, Reduction, Rounds};
use hotcell_graph::types::Iterated;
use hotcell_graph::value::Number;
use hotcell_graph::{Key, List, Object, State, Value};
use hotcell_journal::Write;

use crate::action::Performed;
use crate::action::call::GraphOutput;
use crate::context::Interruption;

/// The state of the graph that is run for an item.
pub(super) fn begin(inputs: &[(Key, Iterated)], item: usize) -> State {
    let mut state = State::default();
    for (key, value) in inputs {
        let value = match value {
            Iterated::Same(value) => Some(value),
            Iterated::Each(values) => values.get(item),
        };
        state.set(key.clone(), value.cloned().unwrap_or_default());
    }
    state
}

/// What is made of what the graphs gave, in the order of the items.
pub(super) fn collect(items: &GraphItems, given: &[GraphOutput]) -> Result<Performed, Interruption> {
    let mut collected = Object::default();
    for collect in &items.collect {
        collected.insert(collect.into.clone(), reduce(collect, given)?);
    }
    let mut writes = Vec::new();
    if let Some(key) = &items.conversation {
        let mut said = List::default();
        for message in given.iter().flat_map(|given| given.said.iter()) {
            let mut message = message.as_object().cloned().unwrap_or_default();
            // Each item numbered its messages as if it were alone.
            message.remove("id");
            said.push(Value::Object(message));
        }
        if !said.is_empty() {
            writes.push(Write { key: key.clone(), value: Value::List(said) });
        }
    }
    Ok(Performed { answer: Some((items.bind, collected.into())), writes, ..Performed::default() })
}

/// What each input is, and how many rounds there are: as many as the lists have items, one if there is no list.
pub(super) fn inputs(inputs: &[Iterate], state: &State) -> Result<(Vec<(Key, Iterated)>, usize), Interruption> {
    let mut rounds: Option<(usize, &Key)> = None;
    let mut values = Vec::with_capacity(inputs.len());
    for input in inputs {
        let value = input.value.evaluate(state).map_err(|error| Interruption::Failed(error.to_string()))?;
        let value = match input.rounds {
            Some(Rounds::Same) => input.ty.convert(&value).map(Iterated::Same),
            Some(Rounds::Each) => input.ty.each(&value).map(Iterated::Each),
            None => input.ty.iterate(&value),
        };
        let value = value.map_err(|mismatch| Interruption::Failed(format!("input `{}`: {mismatch}", input.name)))?;
        if let Iterated::Each(list) = &value {
            match rounds {
                Some((length, other)) if length != list.len() => {
                    return Err(Interruption::Failed(format!(
                        "the lists have to be equally long: input `{other}` has {length} items and input `{}` has {}",
                        input.name,
                        list.len()
                    )));
                }
                _ => rounds = Some((list.len(), &input.name)),
            }
        }
        values.push((input.key.clone(), value));
    }
    Ok((values, rounds.map_or(1, |(length, _)| length)))
}

fn reduce(collect: &Collect, given: &[GraphOutput]) -> Result<Value, Interruption> {
    let values = given.iter().map(|given| given.outputs.get(&collect.output).cloned().unwrap_or_default());
    if collect.how == Reduction::Append {
        return Ok(Value::List(values.collect()));
    }
    let how = collect.how.name();
    let numbers = values.map(|value| match value {
        Value::Number(number) => Ok(number),
        other => {
            Err(Interruption::Failed(format!("`{how}` takes numbers, and output `{}` is {other}", collect.output)))
        }
    });
    let numbers = numbers.collect::<Result<Vec<Number>, Interruption>>()?;
    let sum = |numbers: &[Number]| {
        numbers.iter().try_fold(Number::Int(0), |sum, number| sum.add(number)).ok_or_else(|| {
            Interruption::Failed(format!("the {how} of output `{}` is beyond all numbers", collect.output))
        })
    };
    let result = match (collect.how, numbers.is_empty()) {
        (Reduction::Sum | Reduction::Append, _) => sum(&numbers)?,
        (_, true) => {
            return collect.default.clone().ok_or_else(|| {
                let (output, into) = (&collect.output, &collect.into);
                Interruption::Failed(format!(
                    "`{how}` of output `{output}` over no items has no value, and `{into}` has no default"
                ))
            });
        }
        (Reduction::Average, false) => Number::Float(sum(&numbers)?.to_f64() / numbers.len() as f64),
        (Reduction::Max, false) => best(numbers, std::cmp::Ordering::Greater),
        (Reduction::Min, false) => best(numbers, std::cmp::Ordering::Less),
    };
    Ok(Value::Number(result))
}

/// The first number that none is before in this order.
fn best(numbers: Vec<Number>, order: std::cmp::Ordering) -> Number {
    let better = |best: Number, number: Number| if number.compare(&best) == order { number } else { best };
    numbers.into_iter().reduce(better).unwrap_or(Number::Int(0))
}
