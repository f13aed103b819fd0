//! One name of an object: a parameter of a function or a field of a struct.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::function::local;
use crate::options::{Missing, Options};
use crate::text::escape;

/// A name with its type and what is said about it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) ty: Type,
    pub(crate) options: Options,
    pub(crate) span: Span,
}

impl Named {
    /// The `Field` that describes it.
    pub(crate) fn field(&self) -> TokenStream {
        let (name, ty, description) = (&self.name, &self.ty, escape(&self.description));
        let default = match &self.options.missing {
            Some(Missing::Literal(json)) => json.as_str(),
            _ => "",
        };
        let value = quote_spanned!(ty.span()=> <#ty as ::hotcell_plugin::Value>);
        let required = if self.options.missing.is_some() { quote!(false) } else { quote!(!#value::OPTIONAL) };
        quote! {
            ::hotcell_plugin::macros::Field {
                name: #name,
                description: #description,
                required: #required,
                default: #default,
                schema: #value::SCHEMA,
            }
        }
    }

    /// The expression that takes its value out of a reader called `reader`; it gives a `Result`.
    pub(crate) fn take(&self) -> TokenStream {
        let (name, ty, reader) = (&self.name, &self.ty, local("reader"));
        match &self.options.missing {
            None => quote_spanned!(self.span=> #reader.take::<#ty>(#name)),
            Some(Missing::Default) => {
                quote_spanned!(self.span=> #reader.take_or::<#ty>(#name, ::core::default::Default::default))
            }
            Some(Missing::Function(path)) => quote_spanned!(path.span()=> #reader.take_or::<#ty>(#name, #path)),
            Some(Missing::Literal(json)) => quote_spanned!(self.span=> #reader.take_or_json::<#ty>(#name, #json)),
        }
    }
}

/// The list of the `Field`s, as an expression that is good for ever.
pub(crate) fn fields<'a>(all: impl Iterator<Item = &'a Named>) -> TokenStream {
    let all = all.map(Named::field);
    quote!(&[#(#all),*])
}
