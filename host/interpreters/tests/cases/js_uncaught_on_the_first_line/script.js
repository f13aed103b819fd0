const a = null; console.log(a.b);
