const { n } = JSON.parse(process.env.GRAPH_STATE);
console.log(JSON.stringify(n < 3 ? { _next: "round" } : { last: n }));
