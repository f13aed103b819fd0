//! `#[derive(Value)]` on enums: texts, or objects with a tag.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{DataEnum, Error, Fields, FieldsNamed, Ident, Result, Variant};

use crate::derive::Members;
use crate::function::local;
use crate::options::{Options, Place};
use crate::text::{documentation, escape};

/// A variant with its name outside.
struct Named<'a> {
    variant: &'a Variant,
    name: String,
    options: Options,
}

pub(crate) fn expand(ident: &Ident, data: &DataEnum, options: &Options, description: &str) -> Result<TokenStream> {
    if data.variants.is_empty() {
        return Err(Error::new(ident.span(), "an enum without variants has no values"));
    }
    let mut variants: Vec<Named<'_>> = Vec::new();
    for variant in &data.variants {
        let own = Options::parse(&variant.attrs, Place::Variant)?;
        let name = own.name(&variant.ident.unraw().to_string(), options.rename_all, variant.ident.span())?;
        if variants.iter().any(|other| other.name == name) {
            return Err(Error::new(variant.ident.span(), format!("two variants are called `{name}`")));
        }
        variants.push(Named { variant, name, options: own });
    }
    match &options.tag {
        Some(tag) => tagged(ident, &variants, tag, options, description),
        None => texts(ident, &variants, description),
    }
}

/// The description of the type, with a line for each variant that has one.
fn lines(description: &str, variants: &[Named<'_>]) -> String {
    let mut lines: Vec<String> = Vec::new();
    if !description.is_empty() {
        lines.push(description.to_owned());
    }
    for named in variants {
        let about = documentation(&named.variant.attrs);
        if !about.is_empty() {
            lines.push(escape(&format!("- `{}`: {}", named.name, about.replace('\n', " "))));
        }
    }
    lines.join("\\n")
}

fn texts(ident: &Ident, variants: &[Named<'_>], description: &str) -> Result<TokenStream> {
    if let Some(named) = variants.iter().find(|named| !matches!(named.variant.fields, Fields::Unit)) {
        let message = "an enum whose variants have fields needs a tag: `#[value(tag = \"kind\")]` on the enum";
        return Err(Error::new(named.variant.span(), message));
    }
    let description = lines(description, variants);
    let names: Vec<_> = variants.iter().map(|named| &named.name).collect();
    let idents: Vec<_> = variants.iter().map(|named| &named.variant.ident).collect();
    Ok(quote! {
        impl ::hotcell_plugin::Value for #ident {
            const SCHEMA: &'static ::hotcell_plugin::macros::Schema = &::hotcell_plugin::macros::Schema::Choice {
                description: #description,
                texts: &[#(#names),*],
            };

            fn decode(json: ::hotcell_plugin::Json) -> ::core::result::Result<Self, ::hotcell_plugin::Mismatch> {
                match json.as_str() {
                    #(::core::option::Option::Some(#names) => ::core::result::Result::Ok(Self::#idents),)*
                    _ => ::core::result::Result::Err(::hotcell_plugin::Mismatch::form(Self::SCHEMA, &json)),
                }
            }

            fn encode(self) -> ::core::result::Result<::hotcell_plugin::Json, ::hotcell_plugin::Error> {
                let text = match self {
                    #(Self::#idents => #names,)*
                };
                ::core::result::Result::Ok(::hotcell_plugin::Json::from(text))
            }
        }
    })
}

fn tagged(
    ident: &Ident,
    variants: &[Named<'_>],
    tag: &str,
    options: &Options,
    description: &str,
) -> Result<TokenStream> {
    let none: FieldsNamed = syn::parse_quote!({});
    let (mut forms, mut decodes, mut encodes) = (Vec::new(), Vec::new(), Vec::new());
    for named in variants {
        let fields_of = match &named.variant.fields {
            Fields::Named(named) => named,
            Fields::Unit => &none,
            Fields::Unnamed(unnamed) => {
                return Err(Error::new(unnamed.span(), "a variant of an enum with a tag has named fields or none"));
            }
        };
        let members = Members::parse(fields_of, named.options.rename_all)?;
        if let Some((field, _)) = members.named.iter().find(|(_, field)| field.name == tag) {
            return Err(Error::new(field.span(), format!("`{tag}` is the name of the tag")));
        }
        let (name, variant, open) = (&named.name, &named.variant.ident, options.open);
        let about = escape(&documentation(&named.variant.attrs));
        let list = with_tag(tag, name, &members);
        forms.push(quote! {
            ::hotcell_plugin::macros::Schema::Object(::hotcell_plugin::macros::Object {
                description: #about,
                fields: #list,
                open: #open,
            })
        });
        let (decode, encode, pattern) = (members.decode(), members.encode(), members.pattern());
        let mutability = members.mutability();
        let (reader, object) = (local("reader"), local("members"));
        decodes.push(quote! {
            #name => {
                const FIELDS: &[::hotcell_plugin::macros::Field] = #list;
                let #mutability #reader = ::hotcell_plugin::macros::Reader::new(json, FIELDS, #open)?;
                let value = Self::#variant { #decode };
                ::core::mem::drop(#reader);
                ::core::result::Result::Ok(value)
            }
        });
        encodes.push(quote! {
            Self::#variant #pattern => {
                #object.insert(::std::string::String::from(#tag), ::hotcell_plugin::Json::from(#name));
                #encode
            }
        });
    }
    let names: Vec<_> = variants.iter().map(|named| &named.name).collect();
    let object = local("members");
    Ok(quote! {
        impl ::hotcell_plugin::Value for #ident {
            const SCHEMA: &'static ::hotcell_plugin::macros::Schema = &::hotcell_plugin::macros::Schema::OneOf {
                description: #description,
                forms: &[#(#forms),*],
            };

            fn decode(json: ::hotcell_plugin::Json) -> ::core::result::Result<Self, ::hotcell_plugin::Mismatch> {
                const TAG: &::hotcell_plugin::macros::Schema =
                    &::hotcell_plugin::macros::Schema::Choice { description: "", texts: &[#(#names),*] };
                let tag = ::hotcell_plugin::macros::Reader::tag(&json, #tag, TAG)?;
                match tag.as_str() {
                    #(#decodes)*
                    _ => ::core::result::Result::Err(
                        ::hotcell_plugin::Mismatch::form(TAG, &::hotcell_plugin::Json::from(tag)).in_field(#tag),
                    ),
                }
            }

            fn encode(self) -> ::core::result::Result<::hotcell_plugin::Json, ::hotcell_plugin::Error> {
                let mut #object = ::hotcell_plugin::serde_json::Map::new();
                match self {
                    #(#encodes)*
                }
                ::core::result::Result::Ok(::hotcell_plugin::Json::Object(#object))
            }
        }
    })
}

/// The fields of a variant with the tag before them.
fn with_tag(tag: &str, name: &str, members: &Members) -> TokenStream {
    let rest = members.named.iter().map(|(_, named)| named.field());
    quote! {
        &[
            ::hotcell_plugin::macros::Field {
                name: #tag,
                description: "",
                required: true,
                default: "",
                schema: &::hotcell_plugin::macros::Schema::Constant(#name),
            },
            #(#rest),*
        ]
    }
}
