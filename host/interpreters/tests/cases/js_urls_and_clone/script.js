const u = new URL("../x?b=2&a=1#h", "https://user@host.example:8443/a/b/c");
u.searchParams.append("c", "ä b");
u.hash = "";
console.log(u.href, u.host, u.origin, [...u.searchParams.keys()].join());
console.log(URL.canParse("nope"), new URLSearchParams({ q: "a&b" }).toString());
const original = { date: new Date(5), map: new Map([[1, { two: 2 }]]), list: [1, , 3] };
original.self = original;
const copy = structuredClone(original);
console.log(copy !== original, copy.self === copy, copy.date.getTime(), copy.map.get(1).two, 1 in copy.list);
try { structuredClone(() => {}); } catch (e) { console.log(e.name); }
try { new URL("nope"); } catch (e) { console.log(e.code); }
