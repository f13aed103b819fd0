const state = JSON.parse(process.env.GRAPH_STATE);
const isPoor = state.report.startsWith("poor") && state.tries < 1;
console.log(JSON.stringify(isPoor ? { _next: "look", feedback: "again", tries: 1 } : { report: `${state.report}!` }));
