console.log(JSON.stringify({ topic: "roads" }));
