//! `#[tool]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{LitStr, Result};

use crate::field::{Named, fields};
use crate::function::{Function, local};
use crate::options::{Options, Place, is_ours};
use crate::text::{documentation, name};

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut read_only = false;
    let mut given = None;
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("read_only") {
            read_only = true;
        } else if meta.path.is_ident("name") {
            given = Some(meta.value()?.parse::<LitStr>()?);
        } else {
            return Err(meta.error("`#[tool]` knows `read_only` and `name = \"...\"`"));
        }
        Ok(())
    });
    parser.parse2(attribute)?;
    let function = Function::parse(item, "tool", "Result<T, Error>")?;
    let name = match given {
        Some(given) => name(&given.value(), given.span(), "the name of a tool")?,
        None => name(&function.name(), function.ident().span(), "the name of a tool")?,
    };

    let mut parameters = Vec::new();
    let mut passed = Vec::new();
    let mut locals = Vec::new();
    for (index, parameter) in function.parameters.iter().enumerate() {
        if let Some(other) =
            parameter.attributes.iter().find(|attribute| !is_ours(attribute) && !attribute.path().is_ident("doc"))
        {
            return Err(syn::Error::new(other.span(), "a parameter here takes doc comments and `#[value(...)]`"));
        }
        let options = Options::parse(&parameter.attributes, Place::Parameter)?;
        let variable = local(&format!("argument_{index}"));
        let (ty, expression) = parameter.owned(&variable)?;
        locals.push(variable);
        passed.push(expression);
        parameters.push(Named {
            name: options.name(&parameter.name(), None, parameter.ident.span())?,
            description: documentation(&parameter.attributes),
            ty,
            options,
            span: parameter.ident.span(),
        });
    }
    if let Some(twice) = (1..parameters.len())
        .find(|index| parameters[..*index].iter().any(|other| other.name == parameters[*index].name))
    {
        return Err(syn::Error::new(parameters[twice].span, "two parameters have this name"));
    }

    let fields = fields(parameters.iter());
    let takes: Vec<_> = parameters.iter().map(Named::take).collect();
    let (ident, output, description) = (function.ident(), &function.output, &function.description);
    let returns = quote_spanned!(output.span()=> <#output as ::hotcell_plugin::macros::Returned>::RETURNS);
    let finish = quote_spanned!(output.span()=> <#output as ::hotcell_plugin::macros::Returned>::finish);
    let (read, reader, given) = (local("read"), local("reader"), local("given"));
    let binding = if parameters.is_empty() { quote!(_) } else { quote!(mut #reader) };
    Ok(function.declare(
        "DeclaresTool",
        &quote! {
            const TOOL: ::hotcell_plugin::macros::Tool = {
                const FIELDS: &[::hotcell_plugin::macros::Field] = #fields;
                ::hotcell_plugin::macros::Tool {
                    name: #name,
                    description: #description,
                    read_only: #read_only,
                    parameters: &::hotcell_plugin::macros::Schema::Object(::hotcell_plugin::macros::Object {
                        description: "",
                        fields: FIELDS,
                        open: false,
                    }),
                    returns: #returns,
                    call: |#given| {
                        let #read = |mismatch: ::hotcell_plugin::Mismatch| mismatch.into_error("argument");
                        let #binding = ::hotcell_plugin::macros::Reader::new(#given, FIELDS, false).map_err(#read)?;
                        #(let #locals = #takes.map_err(#read)?;)*
                        #finish(#ident(#(#passed),*))
                    },
                }
            };
        },
    ))
}
