//! `#[script]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Result};

use crate::function::{Function, local, refused};

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(Error::new(attribute.span(), "`#[script]` takes nothing"));
    }
    let function = Function::parse(item, "script", "Result<T, Error>")?;
    function.plain_parameters("the state needs no attributes; put them on the fields of its type")?;
    let (ident, output) = (function.ident(), &function.output);
    let call = match function.parameters.as_slice() {
        [] => quote!(#ident()),
        [state] if state.is_state() => quote!(#ident(&::hotcell_plugin::State::new())),
        [state] => {
            let parameter = local("state");
            let (ty, passed) = state.owned(&parameter)?;
            quote_spanned! {ty.span()=> {
                let #parameter = ::hotcell_plugin::State::new().read::<#ty>()?;
                #ident(#passed)
            }}
        }
        [_, second, ..] => {
            return refused(second.ident.span(), "a script takes one parameter: `&State` or a type with what it reads");
        }
    };
    let finish = quote_spanned!(output.span()=> <#output as ::hotcell_plugin::macros::Returned>::finish);
    Ok(function.declare(
        "DeclaresScript",
        &quote! {
            const RUN: fn() -> ::core::result::Result<::hotcell_plugin::Json, ::hotcell_plugin::Error> =
                || ::hotcell_plugin::macros::changes(#finish(#call)?);
        },
    ))
}
