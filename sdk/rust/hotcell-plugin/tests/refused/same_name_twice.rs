use hotcell_plugin::{Error, plugin, tool};

plugin! { tools: [one, two] }

#[tool(name = "same")]
fn one() -> Result<(), Error> {
    Ok(())
}

#[tool(name = "Same")]
fn two() -> Result<(), Error> {
    Ok(())
}

fn main() {}
