//! Whether every value of one type can become one of another, and whether two types are the same.

use super::{Members, Shape, Type};

impl Type {
    /// Whether what is of this type can flow into a slot of the type `to`, converted where that is needed.
    pub fn converts_to(&self, to: &Type) -> bool {
        match (&self.shape, &to.shape) {
            (Shape::Any, _) | (_, Shape::Any | Shape::Text) => true,
            (Shape::Union(members), _) => members.iter().all(|member| member.converts_to(to)),
            (_, Shape::Union(members)) => members.iter().any(|member| self.converts_to(member)),
            (Shape::Integer | Shape::Number | Shape::Boolean, Shape::Integer | Shape::Number | Shape::Boolean)
            | (Shape::Null, Shape::Null) => true,
            (Shape::Array(from), Shape::Array(to)) => from.converts_to(to),
            (Shape::Object(from), Shape::Object(to)) => objects_convert(from, to),
            _ => false,
        }
    }

    /// Whether this is the same type as another, however it is written: the order of the members of a union, defaults
    /// of nested properties and limits of values do not count.
    pub fn is_same_as(&self, other: &Type) -> bool {
        let each_has_one =
            |these: &[Type], those: &[Type]| these.iter().all(|this| those.iter().any(|that| this.is_same_as(that)));
        match (&self.shape, &other.shape) {
            (Shape::Union(these), Shape::Union(those)) => each_has_one(these, those) && each_has_one(those, these),
            (Shape::Union(these), _) => each_has_one(these, std::slice::from_ref(other)),
            (_, Shape::Union(_)) => other.is_same_as(self),
            (Shape::Array(this), Shape::Array(that)) => this.is_same_as(that),
            (Shape::Object(this), Shape::Object(that)) => same_objects(this, that),
            (this, that) => this == that,
        }
    }
}

fn same_objects(this: &Members, that: &Members) -> bool {
    let others = |members: &Members| members.others.as_deref().cloned().unwrap_or_else(Type::any);
    this.declared.len() == that.declared.len()
        && this.declared.iter().all(|member| {
            that.declared.iter().any(|other| other.name == member.name && other.ty.is_same_as(&member.ty))
        })
        && others(this).is_same_as(&others(that))
}

fn objects_convert(from: &Members, to: &Members) -> bool {
    // Of an object about which nothing is said, nothing can be missed.
    let unknown = from.declared.is_empty() && from.others.is_none();
    let declared =
        to.declared.iter().all(|wanted| match from.declared.iter().find(|member| member.name == wanted.name) {
            Some(member) => {
                let given = !member.optional || wanted.optional || wanted.default.is_some();
                given && member.ty.converts_to(&wanted.ty)
            }
            None => unknown || wanted.optional || wanted.default.is_some(),
        });
    let Some(others) = &to.others else { return declared };
    let is_other = |name: &str| !to.declared.iter().any(|member| &*member.name == name);
    declared
        && from.declared.iter().filter(|member| is_other(&member.name)).all(|member| member.ty.converts_to(others))
        && from.others.as_ref().is_none_or(|from| from.converts_to(others))
}
