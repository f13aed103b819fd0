//! One plugin of every kind, with every interface of the host: the shortest place to see each in use.
//!
//! `cargo build --release --example everything --target wasm32-wasip2` makes the component.

use std::collections::BTreeMap;

use hotcell_plugin::{
    Error, Event, Json, Outcome, Reply, Request, State, Value, Verdict, ask, config, connector, hook, http, info, json,
    kv, llm, node, plugin, progress, script, secrets, time, tool, tools,
};

plugin! {
    name: "example:everything",
    description: "Shows \"everything\" that a plugin can do.",
    tools: [survey, weather],
    script: totals,
    nodes: [lookup],
    hooks: [shorten],
    connector: queue,
    capabilities: {
        http: ["https://api.example.org"],
        secret: { API_KEY: "for the weather" },
        kv: true,
        llm: true,
        tool: ["search"],
        ask: true,
        clock: precise,
    },
}

/// Asks a person, searches, and has a model sum it up.
#[tool]
fn survey(
    /// What it is about.
    topic: &str,
) -> Result<String, Error> {
    let wanted = ask::question(&format!("What do you want to know about {topic}?"))?;
    progress::report(1, Some(2), "searching");
    let found: Json = tools::call("search", json!({ "query": format!("{topic} {wanted}") }))?;
    let answer = llm::Request::new().system("Sum it up in one sentence.").user(found.to_string()).send()?;
    kv::write("last", answer.text.clone())?;
    Ok(answer.text)
}

/// What the weather will be.
#[derive(Value)]
struct Weather {
    /// Degrees Celsius.
    degrees: f64,
    /// Seconds since 1970 when it was asked.
    asked: u64,
}

/// Tells the weather.
#[tool(read_only)]
fn weather(
    /// The city.
    city: &str,
    /// Days from today.
    #[value(default = 0)]
    day: u8,
) -> Result<Weather, Error> {
    let key = secrets::placeholder("API_KEY")?;
    let host = config::get("host").unwrap_or_else(|| "https://api.example.org".to_owned());
    let answer = http::get(format!("{host}/forecast"))
        .query("city", city)
        .query("day", &day.to_string())
        .header("authorization", format!("Bearer {key}"))
        .send()?
        .success()?;
    let degrees = answer.json::<Json>()?["degrees"].as_f64();
    let degrees = degrees.ok_or_else(|| Error::other("the forecast has no `degrees`"))?;
    Ok(Weather { degrees, asked: time::since_1970().as_secs() })
}

/// What the script reads of the state.
#[derive(Value)]
#[value(open)]
struct Orders {
    orders: Vec<BTreeMap<String, f64>>,
}

/// Adds up the orders.
#[script]
fn totals(state: Orders) -> Result<Json, Error> {
    info!("{} orders", state.orders.len());
    let total: f64 = state.orders.iter().filter_map(|order| order.get("total")).sum();
    Ok(json!({ "total": total }))
}

/// What the graph's author writes on the node.
#[derive(Value)]
struct Fields {
    /// Where in the state the table lies.
    table: String,
}

/// What flows in.
#[derive(Value)]
struct Inputs {
    /// The name to look up.
    key: String,
}

/// What flows out.
#[derive(Value)]
struct Outputs {
    value: Option<Json>,
}

/// Looks a name up in a table of the state.
#[node(branches = ["found", "missing"])]
fn lookup(fields: Fields, inputs: Inputs, state: &State) -> Result<Outcome<Outputs>, Error> {
    let value: Option<Json> = state.get(&format!("{}.{}", fields.table, inputs.key))?;
    let branch = if value.is_some() { "found" } else { "missing" };
    Ok(Outcome::by(branch, Outputs { value }))
}

/// Keeps only the last messages.
#[hook("before-model-call")]
fn shorten(event: Event) -> Result<Verdict, Error> {
    let most: usize = config::read::<Option<usize>>("messages")?.unwrap_or(20);
    if event.messages().len() <= most {
        return Ok(Verdict::Proceed);
    }
    let mut changed = event.json.clone();
    changed["messages"] = event.messages()[event.messages().len() - most..].into();
    Ok(Verdict::Change(changed))
}

/// How the queue is set up.
#[derive(Value)]
struct Queue {
    /// Its address.
    url: String,
}

/// Puts a task into a queue; the answer comes later.
#[connector(modes = ["callback"], receive = answered)]
fn queue(request: Request<Json, Queue>) -> Result<Reply<Json>, Error> {
    let callback = request.callback.ok_or_else(|| Error::invalid_input("this connector needs a callback"))?;
    let task = json!({ "task": request.input, "answer_to": callback.url, "session": callback.session });
    http::post(request.config.url).json(&task).send()?.success()?;
    Ok(Reply::Accepted)
}

fn answered(_request: Request<Json, Queue>, body: Json) -> Result<Json, Error> {
    Ok(body["result"].clone())
}
