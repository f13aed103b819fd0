//! Whether every value of one type can become one of another.

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
