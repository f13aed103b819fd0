use hotcell_plugin::{Error, plugin, tool};

plugin! { tools: [wait] }

#[tool]
fn wait(how_long: std::time::Duration) -> Result<(), Error> {
    let _ = how_long;
    Ok(())
}

fn main() {}
