const depth = (n) => n === 0 ? 0 : 1 + depth(n - 1);
console.log(depth(5000));
let value = []; for (let i = 0; i < 300; i += 1) value = [value];
console.log(JSON.stringify(value).length);
