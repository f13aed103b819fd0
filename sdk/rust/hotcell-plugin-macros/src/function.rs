//! What the attributes on functions have in common.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, Pat, Result, ReturnType, Type, TypeReference};

use crate::text::{documentation, escape};

/// A function that can be offered.
pub(crate) struct Function {
    pub(crate) item: ItemFn,
    /// Its doc comment, escaped.
    pub(crate) description: String,
    pub(crate) parameters: Vec<Parameter>,
    /// Its return type.
    pub(crate) output: Type,
}

/// A parameter of such a function.
pub(crate) struct Parameter {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) attributes: Vec<syn::Attribute>,
}

impl Function {
    /// Reads a function; `returns` is what it has to return, for the message when it returns nothing.
    pub(crate) fn parse(item: TokenStream, attribute: &str, returns: &str) -> Result<Self> {
        let mut item: ItemFn = syn::parse2(item)
            .map_err(|error| Error::new(error.span(), format!("`#[{attribute}]` stands on a function ({error})")))?;
        let signature = &mut item.sig;
        if let Some(token) = &signature.asyncness {
            return Err(Error::new(token.span, "a function of a plugin is not `async`: the host's functions wait"));
        }
        if !signature.generics.params.is_empty() {
            return Err(Error::new(signature.generics.span(), "a function of a plugin has no type parameters"));
        }
        let ReturnType::Type(_, output) = &signature.output else {
            return Err(Error::new(signature.ident.span(), format!("`{}` has to return `{returns}`", signature.ident)));
        };
        let output = (**output).clone();
        let mut parameters = Vec::new();
        for input in &mut signature.inputs {
            let FnArg::Typed(typed) = input else {
                return Err(Error::new(input.span(), "a function of a plugin stands alone and has no `self`"));
            };
            let Pat::Ident(pattern) = &*typed.pat else {
                return Err(Error::new(typed.pat.span(), "a parameter here is a plain name"));
            };
            let attributes = std::mem::take(&mut typed.attrs);
            parameters.push(Parameter { ident: pattern.ident.clone(), ty: (*typed.ty).clone(), attributes });
        }
        let description = escape(&documentation(&item.attrs));
        Ok(Self { item, description, parameters, output })
    }

    pub(crate) fn ident(&self) -> &Ident {
        &self.item.sig.ident
    }

    /// The name that it has outside when nothing else is said.
    pub(crate) fn name(&self) -> String {
        self.ident().unraw().to_string()
    }

    /// Refuses attributes and doc comments on parameters, where they would say nothing.
    pub(crate) fn plain_parameters(&self, hint: &str) -> Result<()> {
        match self.parameters.iter().flat_map(|parameter| &parameter.attributes).next() {
            Some(attribute) => Err(Error::new(attribute.span(), hint)),
            None => Ok(()),
        }
    }

    /// The function, and a type of its name that implements `declares` with the constant `constant`.
    pub(crate) fn declare(&self, declares: &str, constant: &TokenStream) -> TokenStream {
        let (item, ident, visibility) = (&self.item, self.ident(), &self.item.vis);
        let declares = format_ident!("{declares}");
        quote! {
            #item

            #[doc(hidden)]
            #[expect(non_camel_case_types, reason = "it has the name of the function that it describes")]
            #visibility enum #ident {}

            impl ::hotcell_plugin::macros::#declares for #ident {
                #constant
            }
        }
    }
}

impl Parameter {
    pub(crate) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }

    /// The type whose values are read for it, and the expression that passes such a value called `local`.
    pub(crate) fn owned(&self, local: &Ident) -> Result<(Type, TokenStream)> {
        let Type::Reference(TypeReference { elem, mutability, .. }) = &self.ty else {
            return Ok((self.ty.clone(), quote!(#local)));
        };
        if mutability.is_some() {
            return Err(Error::new(self.ty.span(), "a parameter here is not `&mut`; take the value itself"));
        }
        let owned = match &**elem {
            Type::Path(path) if path.path.is_ident("str") => syn::parse_quote!(::std::string::String),
            Type::Slice(slice) => {
                let item = &slice.elem;
                syn::parse_quote!(::std::vec::Vec<#item>)
            }
            other => other.clone(),
        };
        Ok((owned, quote!(&#local)))
    }

    /// Whether it is `&State`.
    pub(crate) fn is_state(&self) -> bool {
        let Type::Reference(reference) = &self.ty else { return false };
        let Type::Path(path) = &*reference.elem else { return false };
        path.path.segments.last().is_some_and(|segment| segment.ident == "State")
    }
}

/// A name for a variable of generated code, which no name of the author's can meet.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The error for a parameter too many or too few.
pub(crate) fn refused<T>(span: Span, message: &str) -> Result<T> {
    Err(Error::new(span, message))
}
