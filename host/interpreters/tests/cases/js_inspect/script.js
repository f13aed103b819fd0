class Point { constructor() { this.x = 1; this.inner = { deep: { deeper: { deepest: 1 } } }; } get y() { return 2; } }
const loop = { name: "loop" };
loop.self = loop;
console.log(new Point());
console.log(loop);
console.log(new Map([["k", [1, 2]]]), new Set(["s"]), Symbol("q"), 10n, -0, /x/g, new Date(0));
console.log([1.5, "it's", true], { "a b": 1, f() {}, [Symbol("z")]: 0, get g() { return 1; } });
console.log(Object.create(null), function named() {}, class A extends Point {}, [,1], new Error("boom").message);
console.log(Buffer.from("hi"), new Uint8Array(3), Promise.resolve(4), new URL("https://a.example/p?q=1").href);
