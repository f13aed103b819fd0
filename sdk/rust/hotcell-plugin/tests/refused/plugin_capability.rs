use hotcell_plugin::plugin;

plugin! { tools: [x], capabilities: { network: true } }

fn main() {}
