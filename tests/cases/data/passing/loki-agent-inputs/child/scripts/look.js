const state = JSON.parse(process.env.GRAPH_STATE);
console.log(JSON.stringify({ kinds: `${typeof state.rigor} ${process.env.LLM_AGENT_VAR_WHO} ${state.rows.length}` }));
