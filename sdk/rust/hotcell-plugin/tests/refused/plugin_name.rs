use hotcell_plugin::plugin;

plugin! { name: "a b", tools: [x] }

fn main() {}
