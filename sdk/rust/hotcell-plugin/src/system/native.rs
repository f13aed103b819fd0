//! The surroundings of a test in the place of the host.

use std::time::Duration;

use crate::log::Level;
use crate::testing::with;
use crate::{Error, Json, http};

fn denied<T>(what: &str) -> Result<T, Error> {
    Err(Error::denied(format!("{what} not granted in the surroundings of this test")))
}

pub(crate) fn state_get(path: &str) -> Result<Option<Json>, Error> {
    let step = |value: Json, name: &str| match value {
        Json::Object(mut members) => members.swap_remove(name),
        Json::Array(items) => name.parse::<usize>().ok().and_then(|index| items.get(index).cloned()),
        _ => None,
    };
    Ok(with(|surroundings| path.split('.').try_fold(surroundings.state.clone(), step)))
}

pub(crate) fn state_all() -> Result<Json, Error> {
    Ok(with(|surroundings| surroundings.state.clone()))
}

pub(crate) fn log(level: Level, message: &str) {
    with(|surroundings| surroundings.log.push(format!("{}: {message}", format!("{level:?}").to_lowercase())));
}

pub(crate) fn progress(done: u64, total: Option<u64>, message: &str) {
    let total = total.map_or_else(String::new, |total| format!(" of {total}"));
    with(|surroundings| surroundings.log.push(format!("progress: {done}{total} {message}")));
}

pub(crate) fn config(key: &str) -> Option<String> {
    with(|surroundings| surroundings.config.get(key).cloned())
}

pub(crate) fn ask(question: &str) -> Result<String, Error> {
    with(|surroundings| {
        surroundings.questions.push(question.to_owned());
        match surroundings.answers.pop_front() {
            Some(answer) => Ok(answer),
            None => denied(&format!("there is no answer to `{question}`: it was")),
        }
    })
}

fn checked(key: &str) -> Result<(), Error> {
    if (1..=256).contains(&key.len()) {
        return Ok(());
    }
    Err(Error::invalid_input(format!("a key has 1 to 256 bytes, not {}", key.len())))
}

pub(crate) fn kv_get(key: &str) -> Result<Option<Vec<u8>>, Error> {
    checked(key)?;
    with(|surroundings| surroundings.kv.as_ref().map_or_else(|| denied("kv is"), |kv| Ok(kv.get(key).cloned())))
}

pub(crate) fn kv_set(key: &str, value: &[u8]) -> Result<(), Error> {
    checked(key)?;
    with(|surroundings| {
        let Some(kv) = &mut surroundings.kv else { return denied("kv is") };
        kv.insert(key.to_owned(), value.to_vec());
        Ok(())
    })
}

pub(crate) fn kv_delete(key: &str) -> Result<(), Error> {
    checked(key)?;
    with(|surroundings| {
        let Some(kv) = &mut surroundings.kv else { return denied("kv is") };
        kv.remove(key);
        Ok(())
    })
}

pub(crate) fn kv_keys(prefix: &str) -> Result<Vec<String>, Error> {
    with(|surroundings| {
        let Some(kv) = &surroundings.kv else { return denied("kv is") };
        Ok(kv.keys().filter(|key| key.starts_with(prefix)).take(1000).cloned().collect())
    })
}

pub(crate) fn secret(name: &str) -> Result<String, Error> {
    with(|surroundings| {
        if surroundings.secrets.iter().any(|granted| granted == name) {
            return Ok(format!("secret:{name}"));
        }
        denied(&format!("the secret `{name}` is"))
    })
}

pub(crate) fn time() -> Duration {
    with(|surroundings| surroundings.time)
}

pub(crate) fn complete(request: Json) -> Result<Json, Error> {
    let Some(mut model) = with(|surroundings| surroundings.model.take()) else { return denied("llm is") };
    let reply = model(request);
    with(|surroundings| surroundings.model = Some(model));
    reply
}

pub(crate) fn call_tool(name: &str, arguments: Json) -> Result<Json, Error> {
    let Some(mut tools) = with(|surroundings| surroundings.tools.take()) else {
        return denied(&format!("the tool `{name}` is"));
    };
    let result = tools(name, arguments);
    with(|surroundings| surroundings.tools = Some(tools));
    result
}

pub(crate) fn http(request: http::Request) -> Result<http::Response, Error> {
    http::split(&request.url)?;
    let Some(mut server) = with(|surroundings| surroundings.server.take()) else {
        return denied(&format!("http to `{}` is", request.url));
    };
    let response = server(request);
    with(|surroundings| surroundings.server = Some(server));
    response
}
