const state = JSON.parse(process.env.GRAPH_STATE);
console.log(JSON.stringify({ joined: [state.first, state.second, state.third].join("-").length }));
