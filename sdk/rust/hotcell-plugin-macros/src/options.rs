//! `#[value(...)]` and `#[serde(...)]` on types, fields, variants and parameters.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, ExprUnary, Lit, LitStr, Path, Result, Token, UnOp};

use crate::text::{Case, escape, unescaped};

/// What holds when a name is left out.
pub(crate) enum Missing {
    /// `Default::default()`.
    Default,
    /// What a function gives.
    Function(Path),
    /// A literal, as JSON.
    Literal(String),
}

/// What the attributes said; each place allows some of it.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<Case>,
    pub(crate) tag: Option<String>,
    pub(crate) missing: Option<Missing>,
    pub(crate) skip: bool,
    pub(crate) open: bool,
}

/// Where the attributes stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Type,
    Field,
    Variant,
    Parameter,
}

impl Place {
    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Type => &["rename_all", "tag", "open", "deny_unknown_fields", "transparent"],
            Self::Field => &["rename", "default", "skip"],
            Self::Variant => &["rename", "rename_all"],
            Self::Parameter => &["rename", "default"],
        }
    }
}

impl Options {
    pub(crate) fn parse(attributes: &[Attribute], place: Place) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|attribute| is_ours(attribute)) {
            let serde = attribute.path().is_ident("serde");
            attribute.parse_nested_meta(|meta| options.take(&meta, place, serde))?;
        }
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>, place: Place, serde: bool) -> Result<()> {
        let known = place.known();
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        if !known.contains(&name.as_str()) {
            let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(meta.error(format!("`{name}` is not supported by hotcell here; supported: {known}")));
        }
        match name.as_str() {
            "rename" => {
                let text: LitStr = meta.value()?.parse()?;
                self.rename = Some(unescaped(&text.value(), text.span())?);
            }
            "rename_all" => {
                let text: LitStr = meta.value()?.parse()?;
                self.rename_all = Some(Case::parse(&text.value(), text.span())?);
            }
            "tag" => {
                let text: LitStr = meta.value()?.parse()?;
                self.tag = Some(unescaped(&text.value(), text.span())?);
            }
            "default" if !meta.input.peek(Token![=]) && place == Place::Parameter => {
                return Err(meta.error("say what holds when it is left out: `default = LITERAL`"));
            }
            "default" if !meta.input.peek(Token![=]) => self.missing = Some(Missing::Default),
            "default" if serde => {
                let path: LitStr = meta.value()?.parse()?;
                self.missing = Some(Missing::Function(path.parse()?));
            }
            "default" => self.missing = Some(Missing::Literal(literal(&meta.value()?.parse()?)?)),
            "skip" => self.skip = true,
            "open" if serde => return Err(meta.error("write `#[value(open)]`")),
            "open" => self.open = true,
            // Both are what this crate does anyway.
            _ => {}
        }
        Ok(())
    }

    /// The name that something called `source` gets.
    pub(crate) fn name(&self, source: &str, all: Option<Case>, span: Span) -> Result<String> {
        match (&self.rename, all) {
            (Some(name), _) => Ok(name.clone()),
            (None, Some(case)) => unescaped(&case.apply(source), span),
            (None, None) => unescaped(source, span),
        }
    }
}

/// Whether an attribute is read here; on parameters it also has to be taken away.
pub(crate) fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().is_ident("value") || attribute.path().is_ident("serde")
}

/// A literal of the source as JSON.
fn literal(expression: &Expr) -> Result<String> {
    let refuse = || Error::new(expression.span(), "a default is a text, a number, `true` or `false`");
    match expression {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Str(text) => Ok(format!("\"{}\"", escape(&text.value()))),
            Lit::Int(number) => Ok(number.base10_digits().to_owned()),
            Lit::Float(number) => {
                let digits = number.base10_digits();
                Ok(if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() })
            }
            Lit::Bool(value) => Ok(value.value.to_string()),
            _ => Err(refuse()),
        },
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match &**expr {
            Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }) => Ok(format!("-{}", literal(expr)?)),
            _ => Err(refuse()),
        },
        _ => Err(refuse()),
    }
}
