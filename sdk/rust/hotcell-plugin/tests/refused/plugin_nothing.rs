use hotcell_plugin::plugin;

plugin! { name: "x" }

fn main() {}
