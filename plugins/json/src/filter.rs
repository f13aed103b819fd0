//! The way to `jaq` and back.

use hotcell_plugin::{Error, Json};
use jaq_core::load::{Arena, Error as LoadError, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

/// The first values, `most` of them, that a filter gives.
pub(crate) fn run(code: &str, input: &Json, most: usize) -> Result<Vec<Json>, Error> {
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions).load(&arena, File { code, path: () }).map_err(|errors| {
        let problems = errors.into_iter().flat_map(|(_, error)| problems(code, error)).collect::<Vec<_>>();
        Error::invalid_input(format!("the filter is not jq: {}", problems.join("; ")))
    })?;
    let filter = Compiler::default().with_funs(functions).compile(modules).map_err(|errors| {
        let unknown = errors.into_iter().flat_map(|(_, undefined)| undefined);
        let unknown = unknown.map(|(name, kind)| format!("there is no {} `{name}`", kind.as_str()));
        Error::invalid_input(format!("the filter is not understood: {}", unknown.collect::<Vec<_>>().join("; ")))
    })?;

    let input = read::parse_single(input.to_string().as_bytes())
        .map_err(|error| Error::other(format!("the input cannot be handed to the filter: {error}")))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut values = Vec::new();
    for output in filter.id.run((context, input)).map(unwrap_valr).take(most) {
        let value = output.map_err(|error| Error::invalid_input(format!("the filter failed: {error}")))?;
        values.push(serde_json_of(&value)?);
    }
    Ok(values)
}

fn serde_json_of(value: &Val) -> Result<Json, Error> {
    let text = value.to_string();
    text.parse().map_err(|_| {
        let start: String = text.chars().take(60).collect();
        Error::invalid_input(format!(
            "the filter gave `{start}`, which is not JSON: not a finite number, or not a text"
        ))
    })
}

/// What is wrong with the text of a filter, each with the place.
fn problems(code: &str, error: LoadError<&str>) -> Vec<String> {
    let place = |rest: &str| {
        let before = code.len().saturating_sub(rest.len());
        if rest.is_empty() || before == code.len() {
            "at its end".to_owned()
        } else {
            format!("at `{}`", rest.chars().take(20).collect::<String>())
        }
    };
    match error {
        LoadError::Io(errors) => errors.into_iter().map(|(path, problem)| format!("`{path}`: {problem}")).collect(),
        LoadError::Lex(errors) => errors
            .into_iter()
            .map(|(expected, rest)| format!("expected {} {}", expected.as_str(), place(rest)))
            .collect(),
        LoadError::Parse(errors) => errors
            .into_iter()
            .map(|(expected, rest)| format!("expected {} {}", expected.as_str(), place(rest)))
            .collect(),
    }
}
