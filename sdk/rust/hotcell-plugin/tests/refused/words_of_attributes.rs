use hotcell_plugin::{Error, Event, Json, Outcome, Reply, Request, Verdict, connector, hook, node, script, tool};

#[tool(readonly)]
fn attribute() -> Result<(), Error> {
    Ok(())
}

#[tool(name = "two words")]
fn name() -> Result<(), Error> {
    Ok(())
}

#[tool]
async fn waits() -> Result<(), Error> {
    Ok(())
}

#[tool]
fn generic<T>(value: T) -> Result<T, Error> {
    Ok(value)
}

#[tool]
fn nothing_back(text: String) {}

#[tool]
fn default_without_value(#[value(default)] number: u8) -> Result<(), Error> {
    Ok(())
}

#[tool]
fn mutable(text: &mut String) -> Result<(), Error> {
    Ok(())
}

#[hook("before-lunch")]
fn point(event: Event) -> Result<Verdict, Error> {
    Ok(Verdict::Proceed)
}

#[hook]
fn no_point(event: Event) -> Result<Verdict, Error> {
    Ok(Verdict::Proceed)
}

#[node]
fn parameter(input: Json) -> Result<Outcome<Json>, Error> {
    Ok(Outcome::new(input))
}

#[script]
fn two_states(one: Json, two: Json) -> Result<Json, Error> {
    Ok(one)
}

#[connector(modes = ["later"])]
fn mode(request: Request<Json, Json>) -> Result<Reply<Json>, Error> {
    Ok(Reply::Accepted)
}

#[connector(modes = ["callback"])]
fn no_receive(request: Request<Json, Json>) -> Result<Reply<Json>, Error> {
    Ok(Reply::Accepted)
}

fn main() {}
