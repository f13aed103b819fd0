//! `#[hook]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, LitStr, Result, Token};

use crate::function::{Function, local, refused};

/// The points of the contract.
const POINTS: [&str; 17] = [
    "before-run",
    "after-run",
    "before-node",
    "after-node",
    "node-failed",
    "before-model-call",
    "after-model-call",
    "before-tool-call",
    "after-tool-call",
    "before-agent-call",
    "after-agent-call",
    "before-question",
    "after-question",
    "before-skill-load",
    "after-skill-load",
    "before-skill-unload",
    "after-skill-unload",
];

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let span = attribute.span();
    let points = Punctuated::<LitStr, Token![,]>::parse_terminated.parse2(attribute)?;
    let list = || POINTS.map(|point| format!("`{point}`")).join(", ");
    if points.is_empty() {
        return Err(Error::new(
            span,
            format!("name at least one point: `#[hook(\"before-node\")]`; there are {}", list()),
        ));
    }
    for point in &points {
        if !POINTS.contains(&point.value().as_str()) {
            let message = format!("there is no point `{}`; there are {}", point.value(), list());
            return Err(Error::new(point.span(), message));
        }
    }
    let points = points.iter();
    let function = Function::parse(item, "hook", "Result<Verdict, Error>")?;
    function.plain_parameters("events need no attributes; put them on the fields of their type")?;
    let (event, point) = match function.parameters.as_slice() {
        [event] => (event, None),
        [point, event] => (event, Some(point)),
        _ => {
            let message = "a hook takes the event, and before it `point: &str` if it wants to know the point";
            return refused(function.ident().span(), message);
        }
    };
    let (name, at) = (local("event"), local("point"));
    let (ty, passed) = event.owned(&name)?;
    let passed = if point.is_some() { quote!(#at, #passed) } else { passed };
    let point = if point.is_some() { quote!(#at) } else { quote!(_) };
    let read = quote_spanned! {ty.span()=>
        <#ty as ::hotcell_plugin::Value>::decode(#name).map_err(|mismatch| mismatch.into_error("event value"))?
    };
    let (ident, output, description) = (function.ident(), &function.output, &function.description);
    let finish = quote_spanned!(output.span()=> <#output as ::hotcell_plugin::macros::ReturnedByHook>::finish);
    Ok(function.declare(
        "DeclaresHook",
        &quote! {
            const HOOK: ::hotcell_plugin::macros::Hook = ::hotcell_plugin::macros::Hook {
                points: &[#(#points),*],
                description: #description,
                on: |#point, #name| {
                    let #name = #read;
                    #finish(#ident(#passed))
                },
            };
        },
    ))
}
