//! `#[node]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{LitStr, Result};

use crate::function::{Function, local, refused};
use crate::text::name;

/// Texts in brackets: `["a", "b"]`.
pub(crate) fn texts(input: syn::parse::ParseStream<'_>) -> Result<Vec<LitStr>> {
    let content;
    syn::bracketed!(content in input);
    Ok(content.parse_terminated(|input| input.parse::<LitStr>(), syn::Token![,])?.into_iter().collect())
}

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut branches = Vec::new();
    let mut given = None;
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("branches") {
            for branch in texts(meta.value()?)? {
                branches.push(name(&branch.value(), branch.span(), "the name of a branch")?);
            }
        } else if meta.path.is_ident("name") {
            given = Some(meta.value()?.parse::<LitStr>()?);
        } else {
            return Err(meta.error("`#[node]` knows `name = \"...\"` and `branches = [\"...\"]`"));
        }
        Ok(())
    });
    parser.parse2(attribute)?;
    let function = Function::parse(item, "node", "Result<Outcome<T>, Error>")?;
    function.plain_parameters("fields and inputs need no attributes; put them on the fields of their types")?;
    let name = match given {
        Some(given) => name(&given.value(), given.span(), "the name of a node type")?,
        None => name(&function.name(), function.ident().span(), "the name of a node type")?,
    };

    let empty = quote! {
        &::hotcell_plugin::macros::Schema::Object(::hotcell_plugin::macros::Object {
            description: "",
            fields: &[],
            open: true,
        })
    };
    let (mut fields, mut inputs) = (empty.clone(), empty);
    let (mut passed, mut reads) = (Vec::new(), Vec::new());
    for parameter in &function.parameters {
        let what = match parameter.name().as_str() {
            _ if parameter.is_state() => {
                passed.push(quote!(&::hotcell_plugin::State::new()));
                continue;
            }
            "fields" => "field",
            "inputs" => "input",
            _ => {
                let message = "a node type takes `fields`, `inputs` and `state: &State`, each if it wants it";
                return refused(parameter.ident.span(), message);
            }
        };
        let ident = local(what);
        let (ty, expression) = parameter.owned(&ident)?;
        let schema = quote_spanned!(ty.span()=> <#ty as ::hotcell_plugin::Value>::SCHEMA);
        reads.push(quote_spanned! {ty.span()=>
            let #ident = <#ty as ::hotcell_plugin::Value>::decode(#ident)
                .map_err(|mismatch| mismatch.into_error(#what))?;
        });
        if what == "field" {
            fields = schema;
        } else {
            inputs = schema;
        }
        passed.push(expression);
    }
    let parameter = |wanted: &str, what: &str| {
        let there = function.parameters.iter().any(|parameter| parameter.name() == wanted);
        if there { local(what).into_token_stream() } else { quote!(_) }
    };
    let (of_fields, of_inputs) = (parameter("fields", "field"), parameter("inputs", "input"));
    let (ident, output, description) = (function.ident(), &function.output, &function.description);
    let returned = quote_spanned!(output.span()=> <#output as ::hotcell_plugin::macros::ReturnedByNode>);
    Ok(function.declare(
        "DeclaresNode",
        &quote! {
            const NODE: ::hotcell_plugin::macros::Node = ::hotcell_plugin::macros::Node {
                name: #name,
                description: #description,
                fields: #fields,
                inputs: #inputs,
                outputs: #returned::OUTPUTS,
                branches: &[#(#branches),*],
                run: |#of_fields, #of_inputs| {
                    #(#reads)*
                    #returned::finish(#ident(#(#passed),*))
                },
            };
        },
    ))
}
