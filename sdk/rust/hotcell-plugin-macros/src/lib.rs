//! The attributes of the crate `hotcell-plugin`, which documents them and re-exports them.
//!
//! A function stays what it is. Beside it an empty type of the same name appears (functions and types have namespaces
//! of their own), with a constant that describes the function; `plugin!` collects these constants.

mod capabilities;
mod connector;
mod derive;
mod enumeration;
mod field;
mod function;
mod hook;
mod node;
mod options;
mod plugin;
mod script;
mod text;
mod tool;

use proc_macro::TokenStream;

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Makes a tool of a function with typed arguments.
///
/// Doc comments on the function and on its parameters become descriptions; a parameter of the type `Option` may be
/// left out. `#[tool(read_only)]` says that a call changes nothing anywhere, `#[tool(name = "...")]` gives another
/// name than the function's own. On a parameter, `#[value(default = LITERAL)]` says what holds when it is left out,
/// `#[value(rename = "...")]` how it is called. The function returns `Result<T, Error>`.
///
/// ```ignore
/// /// Rounds a number.
/// #[tool(read_only)]
/// fn round(
///     /// The number.
///     number: f64,
///     /// Digits after the point.
///     #[value(default = 0)]
///     digits: u8,
/// ) -> Result<f64, Error> {
///     let factor = 10_f64.powi(i32::from(digits));
///     Ok((number * factor).round() / factor)
/// }
/// ```
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(tool::expand(attribute.into(), item.into()))
}

/// Makes a script node of a function.
///
/// It takes nothing, `&State`, or a struct with the values of the state that it reads, and returns
/// `Result<T, Error>` with an object, which is merged into the state.
#[proc_macro_attribute]
pub fn script(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(script::expand(attribute.into(), item.into()))
}

/// Makes a node type of a function.
///
/// It may take `fields` (what the graph's author wrote on the node), `inputs` (what flows in) and `state: &State`, and
/// returns `Result<Outcome<T>, Error>`. `#[node(branches = ["found", "missing"])]` names the branches to leave by,
/// `#[node(name = "...")]` gives another name than the function's own.
#[proc_macro_attribute]
pub fn node(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(node::expand(attribute.into(), item.into()))
}

/// Makes a hook of a function: `#[hook("before-model-call", "after-model-call")]`.
///
/// It takes the event (an `Event`, or a type of your own with `#[value(open)]`), and before it `point: &str` if it
/// wants to know the point, and returns `Result<Verdict, Error>`.
#[proc_macro_attribute]
pub fn hook(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(hook::expand(attribute.into(), item.into()))
}

/// Makes a connector of a function.
///
/// It takes a `Request<Input, Config>` and returns `Result<Reply<T>, Error>`. `#[connector(modes = ["sync"])]` says
/// how answers come; with `"callback"` there is also `receive = FUNCTION`, which takes the request and the body that
/// came as `Json`, and returns `Result<T, Error>`.
#[proc_macro_attribute]
pub fn connector(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(connector::expand(attribute.into(), item.into()))
}

/// Gives a struct or an enum a JSON form, read and written and described.
///
/// Structs with named fields are objects; names that they do not have are refused unless the struct has
/// `#[value(open)]`. Structs with one unnamed field are that field. Enums without data are texts, enums with named
/// fields are objects with a tag: `#[value(tag = "kind")]`.
///
/// On types: `rename_all = "camelCase"` and the other cases, `tag`, `open`. On fields: `rename = "..."`, `default`
/// (the type's own), `default = LITERAL`, `skip`. On variants: `rename`. The same names are understood in
/// `#[serde(...)]`, where a default is a path in quotes; everything else there is refused by name.
#[proc_macro_derive(Value, attributes(value, serde))]
pub fn value(item: TokenStream) -> TokenStream {
    finish(derive::expand(item.into()))
}

/// Declares the plugin and what is in it; once for each component.
///
/// ```ignore
/// plugin! {
///     name: "acme:weather",
///     tools: [forecast, alerts],
///     capabilities: { http: ["https://api.example.org"], secret: { API_KEY: "for the forecast" }, kv: true },
/// }
/// ```
///
/// All may be left out: `name` (the crate's), `version` and `description` (those of the crate), `tools`, `nodes`,
/// `hooks` (lists of functions), `script`, `connector` (one function), and `capabilities`, which asks the operator for
/// `http: [...]`, `secret: { NAME: "why" }`, `env: [...]`, `fs: { "/data": read }`, `tool: [...]`, `kv: true`,
/// `llm: true`, `ask: true`, `clock: precise`, `random: fresh`. `http: ["*"]` asks for servers that only the operator can know.
///
/// It makes a constant `PLUGIN`, of use in tests.
#[proc_macro]
pub fn plugin(input: TokenStream) -> TokenStream {
    finish(plugin::expand(input.into()))
}
