//! `#[connector]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, LitStr, Path, Result};

use crate::function::{Function, local, refused};
use crate::node::texts;

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut modes: Vec<LitStr> = Vec::new();
    let mut receive: Option<Path> = None;
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("modes") {
            modes = texts(meta.value()?)?;
        } else if meta.path.is_ident("receive") {
            receive = Some(meta.value()?.parse()?);
        } else {
            return Err(meta.error("`#[connector]` knows `modes = [\"...\"]` and `receive = FUNCTION`"));
        }
        Ok(())
    });
    parser.parse2(attribute)?;
    let function = Function::parse(item, "connector", "Result<Reply<T>, Error>")?;
    function.plain_parameters("a request needs no attributes; put them on the fields of its types")?;
    for mode in &modes {
        if !matches!(mode.value().as_str(), "sync" | "callback") {
            return Err(Error::new(
                mode.span(),
                "the modes are `sync` (answers at once) and `callback` (answers later)",
            ));
        }
    }
    if modes.is_empty() {
        let message = "say how answers come: `#[connector(modes = [\"sync\"])]`, or `\"callback\"`, or both";
        return refused(function.ident().span(), message);
    }
    let later = modes.iter().find(|mode| mode.value() == "callback");
    match (later, &receive) {
        (Some(mode), None) => {
            let message = "a connector with the mode `callback` has `receive = FUNCTION`, which reads what comes";
            return refused(mode.span(), message);
        }
        (None, Some(receive)) => return refused(receive.span(), "`receive` is for the mode `callback`"),
        _ => {}
    }
    let [request] = function.parameters.as_slice() else {
        return refused(function.ident().span(), "a connector takes one parameter: `Request<Input, Config>`");
    };
    let (name, body) = (local("request"), local("body"));
    let (ty, passed) = request.owned(&name)?;
    let (ident, output, description) = (function.ident(), &function.output, &function.description);
    let requested = quote_spanned!(ty.span()=> <#ty as ::hotcell_plugin::macros::Requested>);
    let finish = quote_spanned!(output.span()=> <#output as ::hotcell_plugin::macros::ReturnedByConnector>::finish);
    let receive = match receive {
        None => quote!(::core::option::Option::None),
        Some(receive) => quote_spanned! {receive.span()=>
            ::core::option::Option::Some(|#name, #body| {
                let #name = #requested::read(#name)?;
                ::hotcell_plugin::macros::Returned::finish(#receive(#passed, #body))
            })
        },
    };
    Ok(function.declare(
        "DeclaresConnector",
        &quote! {
            const CONNECTOR: ::hotcell_plugin::macros::Connector = ::hotcell_plugin::macros::Connector {
                description: #description,
                modes: &[#(#modes),*],
                config: #requested::CONFIG,
                send: |#name| {
                    let #name = #requested::read(#name)?;
                    #finish(#ident(#passed))
                },
                receive: #receive,
            };
        },
    ))
}
