//! Whether every value of one type can become one of another, and whether two types are the same.

use std::cell::Cell;
use std::collections::HashMap;

use super::{Members, Shape, Type};

/// Pairs of types that are compared for two types, which may have ten thousand parts each.
const MOST_PAIRS: usize = 100_000;
/// Names of members that are compared in the time of one pair.
const NAMES_A_PAIR: usize = 16;

impl Type {
    /// Whether what is of this type can flow into a slot of the type `to`, converted where that is needed. Of types with very many
    /// alternatives it is only known once something flows.
    pub fn converts_to(&self, to: &Type) -> bool {
        self.converts(to, &Cell::new(MOST_PAIRS))
    }

    fn converts(&self, to: &Type, left: &Cell<usize>) -> bool {
        let Some(rest) = left.get().checked_sub(1) else { return true };
        left.set(rest);
        match (&self.shape, &to.shape) {
            (Shape::Any, _) | (_, Shape::Any | Shape::Text) => true,
            (Shape::Union(members), _) => members.iter().all(|member| member.converts(to, left)),
            (_, Shape::Union(members)) => members.iter().any(|member| self.converts(member, left)),
            (Shape::Integer | Shape::Number | Shape::Boolean, Shape::Integer | Shape::Number | Shape::Boolean)
            | (Shape::Null, Shape::Null) => true,
            (Shape::Array(from), Shape::Array(to)) => from.converts(to, left),
            (Shape::Object(from), Shape::Object(to)) => objects_convert(from, to, left),
            _ => false,
        }
    }

    /// Whether this is the same type as another, however it is written: the order of the members of a union, defaults
    /// of nested properties and limits of values do not count. Types with very many alternatives are not the same.
    pub fn is_same_as(&self, other: &Type) -> bool {
        Comparison::default().is_same(self, other)
    }
}

/// What was compared already. Members of a union are compared in both directions, and so are those within them: without a memory each
/// level would take twice as long as the one below it.
#[derive(Default)]
struct Comparison {
    /// By their addresses, the lower one first
    known: HashMap<(*const Type, *const Type), bool>,
}

impl Comparison {
    fn is_same(&mut self, this: &Type, that: &Type) -> bool {
        let (one, other) = (std::ptr::from_ref(this), std::ptr::from_ref(that));
        let pair = if one <= other { (one, other) } else { (other, one) };
        if let Some(known) = self.known.get(&pair) {
            return *known;
        }
        if self.known.len() >= MOST_PAIRS {
            return false;
        }
        let is_same = match (&this.shape, &that.shape) {
            (Shape::Union(these), Shape::Union(those)) => {
                self.each_has_one(these, those) && self.each_has_one(those, these)
            }
            (Shape::Union(these), _) => self.each_has_one(these, std::slice::from_ref(that)),
            (_, Shape::Union(those)) => self.each_has_one(those, std::slice::from_ref(this)),
            (Shape::Array(this), Shape::Array(that)) => self.is_same(this, that),
            (Shape::Object(this), Shape::Object(that)) => self.are_same_objects(this, that),
            (this, that) => this == that,
        };
        self.known.insert(pair, is_same);
        is_same
    }

    fn each_has_one(&mut self, these: &[Type], those: &[Type]) -> bool {
        these.iter().all(|this| those.iter().any(|that| self.is_same(this, that)))
    }

    fn are_same_objects(&mut self, this: &Members, that: &Members) -> bool {
        let others = match (this.others.as_deref(), that.others.as_deref()) {
            (Some(this), Some(that)) => self.is_same(this, that),
            // Where nothing is said of others they may be anything.
            (Some(others), None) | (None, Some(others)) => others.members().iter().all(Type::is_any),
            (None, None) => true,
        };
        others
            && this.declared.len() == that.declared.len()
            && this.declared.iter().all(|member| {
                that.declared.iter().any(|other| other.name == member.name && self.is_same(&other.ty, &member.ty))
            })
    }
}

fn objects_convert(from: &Members, to: &Members, left: &Cell<usize>) -> bool {
    let names = from.declared.len().saturating_mul(to.declared.len()) / NAMES_A_PAIR;
    left.set(left.get().saturating_sub(names));
    // Of an object about which nothing is said, nothing can be missed.
    let unknown = from.declared.is_empty() && from.others.is_none();
    let declared =
        to.declared.iter().all(|wanted| match from.declared.iter().find(|member| member.name == wanted.name) {
            Some(member) => {
                let given = !member.optional || wanted.optional || wanted.default.is_some();
                given && member.ty.converts(&wanted.ty, left)
            }
            None => unknown || wanted.optional || wanted.default.is_some(),
        });
    let Some(others) = &to.others else { return declared };
    let is_other = |name: &str| !to.declared.iter().any(|member| &*member.name == name);
    declared
        && from.declared.iter().filter(|member| is_other(&member.name)).all(|member| member.ty.converts(others, left))
        && from.others.as_ref().is_none_or(|from| from.converts(others, left))
}
