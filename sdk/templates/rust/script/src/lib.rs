//! A script in Rust: what it returns is merged into the graph's state.

use hotcell_plugin::{Error, State, Value, plugin, script};

/// What is merged into the state.
#[derive(Debug, PartialEq, Value)]
pub struct Greeting {
    greeting: String,
}

/// Greets whoever the state names.
#[script]
pub fn greet(state: &State) -> Result<Greeting, Error> {
    let name: String = state.get("person.name")?;
    Ok(Greeting { greeting: format!("Hello, {name}!") })
}

plugin! {
    name: "{{name}}",
    script: greet,
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::{State, json, testing::Surroundings};

    use super::greet;

    #[test]
    fn the_person_in_the_state_is_greeted() {
        let ran = Surroundings::new().state(json!({ "person": { "name": "Ada" } })).run(|| greet(&State::new()));
        assert_eq!(ran.result.map(|greeting| greeting.greeting), Ok("Hello, Ada!".to_owned()));
    }
}
