const state = JSON.parse(process.env.GRAPH_STATE);
console.log(JSON.stringify({ fault: String(state.broke.startsWith("Agent node failed: ")) }));
