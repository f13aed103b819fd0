use hotcell_plugin::plugin;

plugin! { tools: [x], capabilities: { http: ["api.example.org"] } }

fn main() {}
