//! `capabilities: { ... }` of `plugin!`: what the plugin asks the operator for, as JSON.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitBool, LitStr, Result, Token, braced};

use crate::node::texts;
use crate::text::escape;

const KNOWN: &str = "`http: [\"https://...\"]`, `secret: { NAME: \"why\" }`, `env: [\"NAME\"]`, `fs: { \"/data\": read }`, \
                     `tool: [\"NAME\"]`, `kv: true`, `llm: true`, `ask: true`, `clock: precise`, `random: fresh`";

/// The JSON object, empty for nothing.
#[derive(Default)]
pub(crate) struct Capabilities(pub(crate) String);

impl Parse for Capabilities {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let content;
        braced!(content in input);
        let mut members: Vec<(String, String)> = Vec::new();
        while !content.is_empty() {
            let name = content.call(Ident::parse_any)?;
            content.parse::<Token![:]>()?;
            let key = name.to_string();
            if members.iter().any(|(other, _)| *other == key) {
                return Err(Error::new(name.span(), format!("`{key}` is there twice")));
            }
            let value = match key.as_str() {
                "http" => list(texts(&content)?, |text| {
                    let fits = text == "*" || text.starts_with("https://") || text.starts_with("http://");
                    fits.then_some(()).ok_or("a server is written with `https://` or `http://` before it")
                })?,
                "env" | "tool" => list(texts(&content)?, |_| Ok(()))?,
                "secret" => secrets(&content)?,
                "fs" => directories(&content)?,
                "kv" | "llm" | "ask" => content.parse::<LitBool>()?.value.to_string(),
                "clock" => word(&content, "precise")?,
                "random" => word(&content, "fresh")?,
                _ => {
                    let message = format!("there is no capability `{key}`; there are {KNOWN}");
                    return Err(Error::new(name.span(), message));
                }
            };
            members.push((key, value));
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        let members: Vec<String> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        Ok(Self(if members.is_empty() { String::new() } else { format!("{{{}}}", members.join(",")) }))
    }
}

fn list(texts: Vec<LitStr>, check: impl Fn(&str) -> std::result::Result<(), &'static str>) -> Result<String> {
    let mut items = Vec::new();
    for text in texts {
        let value = text.value();
        if value.is_empty() {
            return Err(Error::new(text.span(), "an empty text names nothing"));
        }
        check(&value).map_err(|message| Error::new(text.span(), message))?;
        items.push(format!("\"{}\"", escape(&value)));
    }
    Ok(format!("[{}]", items.join(",")))
}

fn secrets(input: ParseStream<'_>) -> Result<String> {
    let content;
    braced!(content in input);
    let mut items = Vec::new();
    while !content.is_empty() {
        let name = content.call(Ident::parse_any)?;
        content.parse::<Token![:]>()?;
        let why: LitStr = content.parse()?;
        items.push(format!("{{\"name\":\"{name}\",\"why\":\"{}\"}}", escape(&why.value())));
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    Ok(format!("[{}]", items.join(",")))
}

fn directories(input: ParseStream<'_>) -> Result<String> {
    let content;
    braced!(content in input);
    let mut items = Vec::new();
    while !content.is_empty() {
        let guest: LitStr = content.parse()?;
        if !guest.value().starts_with('/') {
            return Err(Error::new(guest.span(), "a directory begins with `/`; it is where the plugin sees it"));
        }
        content.parse::<Token![:]>()?;
        let access = content.call(Ident::parse_any)?;
        if access != "read" && access != "write" {
            return Err(Error::new(access.span(), "the access to a directory is `read` or `write`"));
        }
        // Whoever may write may read what was written: the host knows nothing in between.
        let access = if access == "write" { "read-write" } else { "read" };
        items.push(format!("{{\"guest\":\"{}\",\"access\":\"{access}\"}}", escape(&guest.value())));
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    Ok(format!("[{}]", items.join(",")))
}

fn word(input: ParseStream<'_>, wanted: &str) -> Result<String> {
    let span: Span = input.span();
    let word = input.call(Ident::parse_any)?;
    if word == wanted {
        return Ok(format!("\"{wanted}\""));
    }
    Err(Error::new(span, format!("what can be asked for here is `{wanted}`")))
}
