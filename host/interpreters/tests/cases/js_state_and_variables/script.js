const state = JSON.parse(process.env.GRAPH_STATE);
console.log(JSON.stringify({ word: state.word.toUpperCase(), region: process.env.LLM_AGENT_VAR_REGION, none: process.env.HOME === undefined }));
