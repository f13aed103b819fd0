class Counter { #n = 0; static made = 0; static { Counter.made = 7; } add() { this.#n += 1; return this.#n; } }
function* numbers() { let i = 0; while (true) yield i++; }
const [a, , b = 5, ...rest] = [1, 2, undefined, 4, 5];
const { x: { y } = { y: 3 }, ...others } = { p: 1, q: 2 };
const tagged = (s, ...v) => s.raw.join("|") + v.join();
label: for (let i = 0; i < 3; i += 1) { for (;;) { if (i === 1) break label; continue label; } }
console.log(new Counter().add(), Counter.made, a, b, rest, y, others, tagged`a${1}b${2}`, 2 ** 10, null ?? "d", undefined?.x, 0 || "or");
console.log([3, 1, 2].toSorted(), Object.groupBy([1, 2, 3], (n) => n % 2 ? "odd" : "even"), "abc".at(-1), [1, [2, [3]]].flat(Infinity), "a-b-c".replaceAll("-", "+"));
console.log(numbers().take ? [...numbers().take(2)] : [0, 1], new Set([1, 2]).union?.(new Set([3]))?.size ?? 3, "x".padStart(3, "ab"), "abc".substr(1, 1), escape("ä"));
console.log((1234567.891).toLocaleString(), (0.256).toLocaleString("en-US", { style: "percent" }), new Date(0).toISOString(), JSON.stringify({ d: new Date(0), u: undefined, n: null }));
console.log("2024-03-01T10:00:00Z".match(/(?<year>\d{4})-(?<month>\d\d)/).groups.year, /\p{Lu}/u.test("É"), "aXbX".split("X"), parseInt("ff", 16), (25).toString(2), 0.1 + 0.2);
