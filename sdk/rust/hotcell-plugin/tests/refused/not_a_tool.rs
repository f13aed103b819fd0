use hotcell_plugin::{Error, plugin, tool};

plugin! { tools: [add, subtract] }

#[tool]
fn add(a: f64, b: f64) -> Result<f64, Error> {
    Ok(a + b)
}

enum subtract {}

fn main() {}
