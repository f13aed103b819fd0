const { item } = JSON.parse(process.env.GRAPH_STATE);
const reply = await fetch(`{WORLD}/trees/${item}`);
console.log(JSON.stringify({ output: await reply.text() }));
