//! `plugin!`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Ident, LitStr, Path, Result, Token, bracketed};

use crate::capabilities::Capabilities;
use crate::text::escape;

#[derive(Default)]
struct Plugin {
    name: Option<LitStr>,
    version: Option<LitStr>,
    description: Option<LitStr>,
    tools: Vec<Path>,
    nodes: Vec<Path>,
    hooks: Vec<Path>,
    script: Option<Path>,
    connector: Option<Path>,
    capabilities: Capabilities,
}

impl Parse for Plugin {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut plugin = Self::default();
        let mut seen: Vec<String> = Vec::new();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            let name = key.to_string();
            if seen.contains(&name) {
                return Err(Error::new(key.span(), format!("`{name}` is there twice")));
            }
            input.parse::<Token![:]>()?;
            match name.as_str() {
                "name" => plugin.name = Some(input.parse()?),
                "version" => plugin.version = Some(input.parse()?),
                "description" => plugin.description = Some(input.parse()?),
                "tools" => plugin.tools = paths(input)?,
                "nodes" => plugin.nodes = paths(input)?,
                "hooks" => plugin.hooks = paths(input)?,
                "script" => plugin.script = Some(input.parse()?),
                "connector" => plugin.connector = Some(input.parse()?),
                "capabilities" => plugin.capabilities = input.parse()?,
                _ => {
                    let message = "`plugin!` knows `name`, `version`, `description`, `tools`, `nodes`, `hooks`, `script`, \
                                   `connector` and `capabilities`";
                    return Err(Error::new(key.span(), message));
                }
            }
            seen.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let offers = plugin.tools.len() + plugin.nodes.len() + plugin.hooks.len();
        if offers == 0 && plugin.script.is_none() && plugin.connector.is_none() {
            let message = "a plugin offers something: `tools: [...]`, `nodes: [...]`, `hooks: [...]`, `script: ...` or \
                           `connector: ...`";
            return Err(Error::new(Span::call_site(), message));
        }
        Ok(plugin)
    }
}

fn paths(input: ParseStream<'_>) -> Result<Vec<Path>> {
    let content;
    bracketed!(content in input);
    Ok(content.parse_terminated(Path::parse_mod_style, Token![,])?.into_iter().collect())
}

/// A name of a plugin: like that of a tool, with at most one `:`.
fn name(text: &str, span: Span) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let parts_are_there = text.split(':').all(|part| !part.is_empty());
    if (1..=64).contains(&text.len()) && text.bytes().all(plain) && text.split(':').count() <= 2 && parts_are_there {
        return Ok(());
    }
    let message =
        format!("`{text}` is not a valid name of a plugin: 1 to 64 ASCII letters, digits, `_`, `-`, `.`, and one `:`");
    Err(Error::new(span, message))
}

/// What is said, or what cargo says of the crate.
fn said(given: Option<&LitStr>, variable: &str) -> String {
    given.map_or_else(|| std::env::var(variable).unwrap_or_default(), LitStr::value)
}

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let plugin: Plugin = syn::parse2(input)?;
    let name_text = said(plugin.name.as_ref(), "CARGO_PKG_NAME");
    name(&name_text, plugin.name.as_ref().map_or_else(Span::call_site, LitStr::span))?;
    let version = escape(&said(plugin.version.as_ref(), "CARGO_PKG_VERSION"));
    let description = escape(&said(plugin.description.as_ref(), "CARGO_PKG_DESCRIPTION"));
    let capabilities = &plugin.capabilities.0;
    let tools = plugin
        .tools
        .iter()
        .map(|path| quote_spanned!(path.span()=> <#path as ::hotcell_plugin::macros::DeclaresTool>::TOOL));
    let nodes = plugin
        .nodes
        .iter()
        .map(|path| quote_spanned!(path.span()=> <#path as ::hotcell_plugin::macros::DeclaresNode>::NODE));
    let hooks = plugin
        .hooks
        .iter()
        .map(|path| quote_spanned!(path.span()=> <#path as ::hotcell_plugin::macros::DeclaresHook>::HOOK));
    let optional = |value: Option<TokenStream>| match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    };
    let script = optional(
        plugin
            .script
            .as_ref()
            .map(|path| quote_spanned!(path.span()=> <#path as ::hotcell_plugin::macros::DeclaresScript>::RUN)),
    );
    let connector =
        optional(plugin.connector.as_ref().map(
            |path| quote_spanned!(path.span()=> <#path as ::hotcell_plugin::macros::DeclaresConnector>::CONNECTOR),
        ));
    let exports = exports(&plugin);
    Ok(quote! {
        /// This plugin, as it is declared; for tests, which call it through it.
        pub const PLUGIN: ::hotcell_plugin::Plugin = ::hotcell_plugin::Plugin {
            name: #name_text,
            version: #version,
            description: #description,
            tools: &[#(#tools),*],
            nodes: &[#(#nodes),*],
            hooks: &[#(#hooks),*],
            script: #script,
            connector: #connector,
            capabilities: #capabilities,
        };

        const _: () = PLUGIN.check();

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            const LENGTH: usize = ::hotcell_plugin::macros::length(&PLUGIN);

            #[unsafe(link_section = "hotcell:description")]
            static DESCRIPTION: [u8; LENGTH] = ::hotcell_plugin::macros::render::<LENGTH>(&PLUGIN);

            use ::hotcell_plugin::macros::bindings;
            struct Component;
            #exports
        };
    })
}

/// The exports of the component, one for each kind of thing that it offers.
fn exports(plugin: &Plugin) -> TokenStream {
    let error = quote!(bindings::types::Error);
    let result = quote!(::core::result::Result);
    let text = quote!(::std::string::String);
    let mut exports = TokenStream::new();
    if !plugin.tools.is_empty() {
        exports.extend(quote! {
            impl bindings::tools::exports::hotcell::plugin::call_tool::Guest for Component {
                fn call(name: #text, arguments: #text) -> #result<#text, #error> {
                    bindings::call_tool(&PLUGIN, &name, &arguments)
                }
            }
            bindings::tools::export!(Component with_types_in bindings::tools);
        });
    }
    if plugin.script.is_some() {
        exports.extend(quote! {
            impl bindings::script::exports::hotcell::plugin::run_script::Guest for Component {
                fn run() -> #result<#text, #error> {
                    bindings::run_script(&PLUGIN)
                }
            }
            bindings::script::export!(Component with_types_in bindings::script);
        });
    }
    if !plugin.nodes.is_empty() {
        exports.extend(quote! {
            impl bindings::node::exports::hotcell::plugin::run_node::Guest for Component {
                fn run(
                    node_type: #text,
                    fields: #text,
                    inputs: #text,
                ) -> #result<bindings::node::exports::hotcell::plugin::run_node::Outcome, #error> {
                    bindings::run_node(&PLUGIN, &node_type, &fields, &inputs)
                }
            }
            bindings::node::export!(Component with_types_in bindings::node);
        });
    }
    if !plugin.hooks.is_empty() {
        exports.extend(quote! {
            impl bindings::hooks::exports::hotcell::plugin::hook::Guest for Component {
                fn on(
                    point: #text,
                    event: #text,
                ) -> #result<bindings::hooks::exports::hotcell::plugin::hook::Verdict, #error> {
                    bindings::on(&PLUGIN, &point, &event)
                }
            }
            bindings::hooks::export!(Component with_types_in bindings::hooks);
        });
    }
    if plugin.connector.is_some() {
        exports.extend(quote! {
            impl bindings::connector::exports::hotcell::plugin::connect::Guest for Component {
                fn send(
                    request: bindings::connector::exports::hotcell::plugin::connect::Request,
                ) -> #result<bindings::connector::exports::hotcell::plugin::connect::Reply, #error> {
                    bindings::send(&PLUGIN, request)
                }
                fn receive(
                    request: bindings::connector::exports::hotcell::plugin::connect::Request,
                    body: #text,
                ) -> #result<#text, #error> {
                    bindings::receive(&PLUGIN, request, &body)
                }
            }
            bindings::connector::export!(Component with_types_in bindings::connector);
        });
    }
    exports
}
