const state = JSON.parse(process.env.GRAPH_STATE);
console.log(JSON.stringify({ report: `fault: ${state.report}` }));
