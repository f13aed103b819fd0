console.log(JSON.stringify({ count: 1 }));
