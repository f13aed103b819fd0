use hotcell_plugin::plugin;

plugin! { tools: [x], capabilities: { fs: { "/data": execute } } }

fn main() {}
