const state = JSON.parse(process.env.GRAPH_STATE);
const name = state.initial_prompt || "you";
console.log(JSON.stringify({ greeting: `Hello, ${name}!` }));
