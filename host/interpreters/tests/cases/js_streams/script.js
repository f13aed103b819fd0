process.stdout.write("a");
process.stdout.write(new Uint8Array([98, 10]));
console.error("to %s, %d%%", "stderr", 5, { x: 1 });
console.info([1, "two", null, undefined]);
console.warn("careful");
