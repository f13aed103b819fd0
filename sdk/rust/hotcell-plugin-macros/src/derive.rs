//! `#[derive(Value)]` on structs; enums are in [`crate::enumeration`].

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, FieldsNamed, Ident, Result};

use crate::field::{Named, fields};
use crate::function::local;
use crate::options::{Options, Place};
use crate::text::{Case, documentation, escape};

pub(crate) fn expand(item: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), "`Value` is for types without parameters"));
    }
    let options = Options::parse(&input.attrs, Place::Type)?;
    let description = escape(&documentation(&input.attrs));
    match &input.data {
        Data::Enum(data) => crate::enumeration::expand(&input.ident, data, &options, &description),
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => structure(&input.ident, named, &options, &description),
            Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
                let ty = &unnamed.unnamed[0].ty;
                Ok(transparent(&input.ident, ty))
            }
            other => {
                let message = "`Value` is for structs with named fields, or with one unnamed field";
                Err(Error::new(if other.is_empty() { input.ident.span() } else { other.span() }, message))
            }
        },
        Data::Union(data) => Err(Error::new(data.union_token.span, "`Value` is for structs and enums")),
    }
}

/// The fields of a struct or a variant, split by whether they have a name outside.
pub(crate) struct Members {
    pub(crate) named: Vec<(Ident, Named)>,
    pub(crate) skipped: Vec<Ident>,
}

impl Members {
    pub(crate) fn parse(fields: &FieldsNamed, all: Option<Case>) -> Result<Self> {
        let mut members = Self { named: Vec::new(), skipped: Vec::new() };
        for field in &fields.named {
            let Some(ident) = &field.ident else { continue };
            let options = Options::parse(&field.attrs, Place::Field)?;
            if options.skip {
                members.skipped.push(ident.clone());
                continue;
            }
            let name = options.name(&ident.unraw().to_string(), all, ident.span())?;
            if members.named.iter().any(|(_, other)| other.name == name) {
                return Err(Error::new(ident.span(), format!("two fields are called `{name}`")));
            }
            let named = Named {
                name,
                description: documentation(&field.attrs),
                ty: field.ty.clone(),
                options,
                span: ident.span(),
            };
            members.named.push((ident.clone(), named));
        }
        Ok(members)
    }

    /// The fields of a struct expression, taken out of `reader`.
    pub(crate) fn decode(&self) -> TokenStream {
        let idents = self.named.iter().map(|(ident, _)| ident);
        let takes = self.named.iter().map(|(_, named)| named.take());
        let skipped = &self.skipped;
        quote!(#(#idents: #takes?,)* #(#skipped: ::core::default::Default::default(),)*)
    }

    /// Statements that put the fields, bound to their names, into `members`.
    pub(crate) fn encode(&self) -> TokenStream {
        let puts = self.named.iter().map(|(ident, named)| {
            let (name, ty, members) = (&named.name, &named.ty, local("members"));
            quote_spanned! {ident.span()=>
                #members.insert(
                    ::std::string::String::from(#name),
                    <#ty as ::hotcell_plugin::Value>::encode(#ident)?,
                );
            }
        });
        quote!(#(#puts)*)
    }

    /// A pattern that binds the fields with names outside.
    pub(crate) fn pattern(&self) -> TokenStream {
        let idents = self.named.iter().map(|(ident, _)| ident);
        quote!({ #(#idents,)* .. })
    }

    pub(crate) fn mutability(&self) -> TokenStream {
        if self.named.is_empty() { quote!() } else { quote!(mut) }
    }
}

fn structure(ident: &Ident, named: &FieldsNamed, options: &Options, description: &str) -> Result<TokenStream> {
    if options.tag.is_some() {
        return Err(Error::new(ident.span(), "`tag` is for enums"));
    }
    let members = Members::parse(named, options.rename_all)?;
    let fields = fields(members.named.iter().map(|(_, named)| named));
    let (decode, encode, pattern, open) = (members.decode(), members.encode(), members.pattern(), options.open);
    let mutability = members.mutability();
    let (reader, object) = (local("reader"), local("members"));
    Ok(quote! {
        const _: () = {
            const FIELDS: &[::hotcell_plugin::macros::Field] = #fields;

            impl ::hotcell_plugin::Value for #ident {
                const SCHEMA: &'static ::hotcell_plugin::macros::Schema =
                    &::hotcell_plugin::macros::Schema::Object(::hotcell_plugin::macros::Object {
                        description: #description,
                        fields: FIELDS,
                        open: #open,
                    });

                fn decode(
                    json: ::hotcell_plugin::Json,
                ) -> ::core::result::Result<Self, ::hotcell_plugin::Mismatch> {
                    let #mutability #reader = ::hotcell_plugin::macros::Reader::new(json, FIELDS, #open)?;
                    let value = Self { #decode };
                    ::core::mem::drop(#reader);
                    ::core::result::Result::Ok(value)
                }

                fn encode(self) -> ::core::result::Result<::hotcell_plugin::Json, ::hotcell_plugin::Error> {
                    let Self #pattern = self;
                    let #mutability #object = ::hotcell_plugin::serde_json::Map::new();
                    #encode
                    ::core::result::Result::Ok(::hotcell_plugin::Json::Object(#object))
                }
            }
        };
    })
}

fn transparent(ident: &Ident, ty: &syn::Type) -> TokenStream {
    let value = quote_spanned!(ty.span()=> <#ty as ::hotcell_plugin::Value>);
    quote! {
        impl ::hotcell_plugin::Value for #ident {
            const SCHEMA: &'static ::hotcell_plugin::macros::Schema = #value::SCHEMA;
            const OPTIONAL: bool = #value::OPTIONAL;

            fn decode(json: ::hotcell_plugin::Json) -> ::core::result::Result<Self, ::hotcell_plugin::Mismatch> {
                #value::decode(json).map(Self)
            }

            fn encode(self) -> ::core::result::Result<::hotcell_plugin::Json, ::hotcell_plugin::Error> {
                #value::encode(self.0)
            }

            fn absent() -> ::core::option::Option<Self> {
                #value::absent().map(Self)
            }
        }
    }
}
