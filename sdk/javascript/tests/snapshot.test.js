// What stands in for `wizer` when a component is built, with an engine of a few instructions.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { snapshot } from "../hotcell-plugin/snapshot.mjs";

const text = (value) => [value.length, ...Buffer.from(value)];
const section = (id, ...items) => {
  const contents = [items.length, ...items.flat()];
  return [id, contents.length, ...contents];
};

/** An engine that fills memory from 64 on by the function it imports, sets a global to 42, and has `abc` at 0. */
function engine(from, name) {
  const fills = [0x41, 0xc0, 0x00, 0x41, 16, 0x10, 0, 0x1a, 0x41, 42, 0x24, 0, 0x0b];
  return Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [0x60, 2, 0x7f, 0x7f, 1, 0x7f], [0x60, 0, 0], [0x60, 0, 1, 0x7f]),
    ...section(2, [...text(from), ...text(name), 0, 0]),
    ...section(3, 1, 2),
    ...section(5, [0, 1]),
    ...section(6, [0x7f, 1, 0x41, 1, 0x0b]),
    ...section(7, [...text("memory"), 2, 0], [...text("start"), 0, 1], [...text("value"), 0, 2]),
    ...section(10, [fills.length + 1, 0, ...fills], [4, 0, 0x23, 0, 0x0b]),
    ...section(11, [0, 0x41, 0, 0x0b, ...text("abc")]),
  ]);
}

/** Takes a snapshot in a new folder; gives what came of it and the module, if there is one. */
function taken(module) {
  const folder = mkdtempSync(join(tmpdir(), "snapshot-"));
  try {
    const [bindings, project] = [join(folder, "bindings"), join(folder, "project")];
    for (const one of [bindings, project]) mkdirSync(one);
    const [input, output] = [join(folder, "in.wasm"), join(folder, "out.wasm")];
    writeFileSync(input, module);
    const given = ["--allow-wasi", "--init-func", "start", `--dir=${bindings}`, `--mapdir=/::${project}`, `-o=${output}`, input];
    const result = snapshot(given, { env: { NAME: "value" }, input: `--initializer ${bindings}/a.js ${project}/b.js` });
    return { ...result, bytes: result.status === 0 ? readFileSync(output) : undefined };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a snapshot begins where the engine was, and is the same in every folder", () => {
  const module = engine("wasi_snapshot_preview1", "random_get");
  const [first, second] = [taken(module), taken(module)];
  assert.equal(first.status, 0, first.stderr);
  assert.deepEqual(first.bytes, second.bytes);
  const unused = () => assert.fail("nothing runs when the snapshot starts");
  const started = new WebAssembly.Module(first.bytes);
  const { exports } = new WebAssembly.Instance(started, { wasi_snapshot_preview1: { random_get: unused } });
  assert.deepEqual(Object.keys(exports), ["memory", "value"]);
  assert.equal(exports.value(), 42);
  const memory = Buffer.from(exports.memory.buffer);
  assert.equal(memory.subarray(0, 3).toString(), "abc");
  assert.ok(memory.subarray(64, 80).some((byte) => byte !== 0), "it has drawn random numbers");
  assert.ok(memory.subarray(80).every((byte) => byte === 0));
});

test("an engine that asks for more than there is while a plugin is built is told so", () => {
  const { status, stderr } = taken(engine("wasi:http/types@0.2.10", "handle"));
  assert.equal(status, 1);
  assert.match(stderr, /^the top of a module calls `handle` of `wasi:http\/types@0.2.10`, .* call it inside `run`$/);
});

test("arguments of another version are refused", () => {
  assert.throws(() => snapshot(["--unknown"], { env: {}, input: "" }), /asks for a snapshot in another way: --unknown/);
});
