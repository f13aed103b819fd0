const x = await Promise.resolve(2);
console.log(x, typeof require);
