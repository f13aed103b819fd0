use hotcell_plugin::{plugin, tool};

plugin! { tools: [add] }

#[tool]
fn add(a: f64, b: f64) -> f64 {
    a + b
}

fn main() {}
