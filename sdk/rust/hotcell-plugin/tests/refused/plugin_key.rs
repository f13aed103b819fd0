use hotcell_plugin::plugin;

plugin! { tool: [x] }

fn main() {}
