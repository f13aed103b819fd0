//! What the macros refuse, and where in the source they say so. Each file in `tests/refused` has beside it what the
//! compiler prints; `TRYBUILD=overwrite cargo test --test refusals` writes it anew.

#[test]
fn mistakes_are_refused_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
