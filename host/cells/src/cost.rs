//! What the structure of WebAssembly says about how dear it is to compile, found out by reading it once.
//!
//! Compilers need far more than proportional time for a few shapes that no toolchain makes: loops nested by the hundred in
//! which many variables change, functions of very many parameters. This looks for those. It is no promise that what passes is
//! cheap: that is what the limits of the process are for which compiles.

use wasmparser::{CompositeInnerType, FunctionBody, Operator, Parser, Payload};

use crate::inspect::{InspectError, invalid, limit};

/// Loops in loops.
const MAX_LOOPS: u64 = 100;
/// Parameters and results of one function.
const MAX_SIGNATURE: u64 = 256;
/// Local variables of one function.
const MAX_LOCALS: u64 = 20_000;
/// Variables that change within loops, each counted once for every loop and weighed with how deep that one is: over all
/// functions, this much and so much for each byte.
const BASE_CHANGES: u64 = 4_000_000;
const CHANGES_PER_BYTE: u64 = 4;

/// Refuses what is known to be dear. `bytes` are a component or module that [`inspect`](crate::inspect::inspect) takes.
pub(crate) fn check(bytes: &[u8]) -> Result<(), InspectError> {
    let most = BASE_CHANGES + CHANGES_PER_BYTE * bytes.len() as u64;
    let mut changes = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(invalid)? {
            Payload::TypeSection(types) => {
                for group in types {
                    for ty in group.map_err(invalid)?.types() {
                        if let CompositeInnerType::Func(function) = &ty.composite_type.inner {
                            let count = function.params().len() + function.results().len();
                            limit("parameters and results of one function", count as u64, MAX_SIGNATURE)?;
                        }
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                changes += changes_in_loops(&body)?;
                limit("variables that change in nested loops", changes, most)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The variables that change within loops of a function, weighed.
fn changes_in_loops(body: &FunctionBody<'_>) -> Result<u64, InspectError> {
    let mut locals = 0;
    for group in body.get_locals_reader().map_err(invalid)? {
        locals += u64::from(group.map_err(invalid)?.0);
        limit("variables in one function", locals, MAX_LOCALS)?;
    }
    // For each block that is open, whether it is a loop, and the changes in each loop that is open, the outermost first.
    let (mut blocks, mut loops, mut sum) = (Vec::new(), Vec::new(), 0_u64);
    let mut operators = body.get_operators_reader().map_err(invalid)?;
    while !operators.eof() {
        match operators.read().map_err(invalid)? {
            Operator::Loop { .. } => {
                blocks.push(true);
                loops.push(0_u64);
                limit("loops in each other", loops.len() as u64, MAX_LOOPS)?;
            }
            Operator::Block { .. } | Operator::If { .. } | Operator::TryTable { .. } => blocks.push(false),
            Operator::LocalSet { .. } | Operator::LocalTee { .. } => {
                if let Some(innermost) = loops.last_mut() {
                    *innermost += 1;
                }
            }
            Operator::End => {
                if blocks.pop() == Some(true)
                    && let Some(within) = loops.pop()
                {
                    sum = sum.saturating_add(within.min(locals + MAX_SIGNATURE).saturating_mul(loops.len() as u64 + 1));
                    if let Some(around) = loops.last_mut() {
                        *around += within;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::check;

    fn checked(text: &str) -> String {
        let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
        check(&bytes).map_or_else(|error| error.to_string(), |()| "passes".to_owned())
    }

    /// Loops in each other around changes of variables.
    fn nested(loops: usize, locals: usize, functions: usize) -> String {
        let changes: String = (0..locals).map(|local| format!("(local.set {local} (i32.const 1))")).collect();
        let function = format!(
            "(func (local {}) {} {changes} {})",
            "i32 ".repeat(locals),
            "(loop ".repeat(loops),
            "(br_if 0 (local.get 0)))".repeat(loops)
        );
        format!("(module {})", function.repeat(functions))
    }

    #[test]
    fn attack_59_shapes_that_are_dear_to_compile_are_refused() {
        assert_eq!(checked(&nested(10, 200, 20)), "passes");
        assert_eq!(checked(&nested(100, 10, 1)), "passes");
        let parameters = format!("(module (func (param {})))", "i32 ".repeat(300));
        let locals = format!("(module (func (local {})))", "i32 ".repeat(20_001));
        for (text, expected) in [
            (nested(101, 1, 1), "loops in each other"),
            (nested(90, 2_000, 1), "variables that change in nested loops"),
            (nested(50, 400, 20), "variables that change in nested loops"),
            (parameters, "parameters and results of one function"),
            (locals, "variables in one function"),
        ] {
            let told = checked(&text);
            assert!(told.contains(expected), "`{expected}` is not in `{told}`");
        }
    }

    #[test]
    fn a_component_is_looked_through() {
        let told =
            checked(&format!("(component (component {}))", nested(101, 1, 1).replacen("(module", "(core module", 1)));
        assert!(told.contains("loops in each other"), "{told}");
    }
}
