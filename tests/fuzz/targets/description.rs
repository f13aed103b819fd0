//! Any bytes as what a component with tools says about itself: they are refused in one line, or are what is read back from
//! them.
#![no_main]

use std::sync::LazyLock;

use hotcell_cells::{DESCRIPTION_SECTION, Description, survey};
use libfuzzer_sys::fuzz_target;
use wasm_encoder::{ComponentSection as _, CustomSection};

/// Exports everything that can be described, and does nothing.
static COMPONENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = r#"(component (instance $i)
        (export "hotcell:plugin/call-tool@0.2.0" (instance $i)) (export "hotcell:plugin/run-node@0.2.0" (instance $i))
        (export "hotcell:plugin/hook@0.2.0" (instance $i)) (export "hotcell:plugin/connect@0.2.0" (instance $i)))"#;
    wat::parse_str(text).expect("the component is wrong")
});

fuzz_target!(|bytes: &[u8]| {
    let mut component = COMPONENT.clone();
    CustomSection { name: DESCRIPTION_SECTION.into(), data: bytes.into() }.append_to_component(&mut component);
    match survey(&component) {
        Ok(survey) => {
            let description = survey.description.expect("it was described");
            let text = serde_json::to_string(&description).expect("it cannot be written");
            let again: Description = serde_json::from_str(&text).expect("it cannot be read back");
            assert_eq!(again, description);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
});
