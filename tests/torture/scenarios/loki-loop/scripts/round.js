const { n = 0 } = JSON.parse(process.env.GRAPH_STATE);
console.log(JSON.stringify({ n: n + 1 }));
