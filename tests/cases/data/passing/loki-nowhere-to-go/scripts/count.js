console.log(JSON.stringify({ n: 2 }));
