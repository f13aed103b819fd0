// Tests of the SDK without a cell: `node --test` in `sdk/javascript`.

import { toHost } from "../hotcell-plugin/errors.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  accepted, any, boolean, change, choice, connect, describe, hook, integer, InvalidInput, list, map, node, nullable, number,
  object, optional, outcome, PluginError, refuse, text, tool,
} from "../hotcell-plugin/index.js";
import { check } from "../hotcell-plugin/shapes.js";
import connectorCalls from "../hotcell-plugin/exports/connector.js";
import hookCalls from "../hotcell-plugin/exports/hooks.js";
import nodeCalls from "../hotcell-plugin/exports/node.js";
import toolCalls from "../hotcell-plugin/exports/tool.js";

const place = object({ name: text("What it is called."), height: optional(number(), 0) }, "A place.");

test("shapes are JSON schemas", () => {
  assert.deepEqual(place.schema, {
    type: "object",
    properties: { name: { type: "string", description: "What it is called." }, height: { type: "number", default: 0 } },
    required: ["name"],
    additionalProperties: false,
    description: "A place.",
  });
  assert.deepEqual(list(integer()).schema, { type: "array", items: { type: "integer" } });
  assert.deepEqual(map(boolean()).schema, { type: "object", additionalProperties: { type: "boolean" } });
  assert.deepEqual(nullable(choice(["a"])).schema, { anyOf: [{ enum: ["a"] }, { type: "null" }] });
});

test("what fits gets its defaults", () => {
  assert.deepEqual(check(place.schema, { name: "Oslo" }), { name: "Oslo", height: 0 });
  assert.deepEqual(check(place.schema, { name: "Oslo", height: null }), { name: "Oslo", height: 0 });
  assert.deepEqual(check(list(any()).schema, [1, { a: [] }]), [1, { a: [] }]);
});

test("what does not fit is said with its place", () => {
  const cases = [
    [integer(), 1.5, "the input must be a whole number, but is `1.5`"],
    [text(), null, "the input must be a text, but is null"],
    [list(integer()), [1, "b"], '[1] must be a whole number, but is `"b"`'],
    [choice([1]), true, "must be one of `1`, but is `true`"],
    [nullable(integer()), "a", "must be a whole number"],
    [place, {}, "`name` is missing"],
    [place, { name: "a", depth: 1 }, "`depth` is not known; there are: `height`, `name`"],
    [place, JSON.parse('{"name": "a", "__proto__": 1}'), "`__proto__` is not known"],
    [place, [], "must be an object, but is a list"],
  ];
  for (const [shape, value, expected] of cases) {
    assert.throws(() => check(shape.schema, value), (error) => {
      assert.ok(error instanceof InvalidInput && error.message.includes(expected), error.message);
      return true;
    });
  }
});

const failure = async (promise) => (await promise.then(assert.fail, (error) => error)).payload;

test("a tool is described and called", async () => {
  const plugin = {
    tools: {
      find: tool({
        description: "Finds.",
        readOnly: true,
        parameters: { where: place, limit: optional(integer(), 3) },
        returns: { where: place, limit: integer() },
        run: async ({ where, limit }) => ({ where, limit }),
      }),
      bad: tool({ description: "Fails.", run: () => { throw new TypeError("oh"); } }),
      none: tool({ description: "Gives nothing.", run: () => undefined }),
      count: tool({ description: "Counts.", returns: integer("How many."), run: () => 1 }),
    },
  };
  const [described, , none, count] = describe(plugin).tools;
  assert.deepEqual([described.returns.type, described.returns.required], ["object", ["where", "limit"]]);
  assert.deepEqual([none.returns, count.returns], [undefined, { type: "integer", description: "How many." }]);
  assert.throws(() => tool({ description: "x", returns: { a: 1 }, run: () => 1 }), /the result of a tool: `a` is not a shape/);
  assert.deepEqual([described.name, described.read_only, described.parameters.required], ["find", true, ["where"]]);
  const calls = toolCalls(plugin);
  assert.equal(await calls.call("find", '{"where": {"name": "a"}}'), '{"where":{"name":"a","height":0},"limit":3}');
  assert.equal(await calls.call("none", "{}"), "null");
  assert.equal((await failure(calls.call("find", "{"))).tag, "invalid-input");
  assert.equal((await failure(calls.call("toString", "{}"))).tag, "invalid-input");
  assert.deepEqual(await failure(calls.call("bad", "{}")), { tag: "other", val: { message: "TypeError: oh", metadata: [] } });
});

test("a node leaves by a declared branch", async () => {
  const nodes = {
    look: node({
      description: "Looks.",
      inputs: { key: text() },
      branches: ["found"],
      run: (fields, { key }) => outcome({ key }, fields.branch),
    }),
  };
  const described = describe({ nodes }).nodes[0];
  assert.deepEqual([described.type, described.branches, described.inputs.required], ["look", ["found"], ["key"]]);
  const calls = nodeCalls({ nodes });
  const given = await calls.run("look", '{"branch": "found"}', '{"key": "a", "more": 1}');
  assert.deepEqual(given, { outputs: '{"key":"a"}', branch: "found", metadata: [] });
  assert.match((await failure(calls.run("look", '{"branch": "lost"}', '{"key": "a"}'))).val.message, /it declares found/);
});

test("hooks give verdicts", async () => {
  const verdicts = { a: undefined, b: change({ n: 1 }), c: refuse("no"), d: 1 };
  const hooks = { "before-tool-call": hook({ description: "Checks.", run: ({ tool }) => verdicts[tool] }) };
  const calls = hookCalls({ hooks });
  const verdict = (name) => calls.on("before-tool-call", JSON.stringify({ tool: name }));
  assert.deepEqual(await verdict("a"), { tag: "proceed" });
  assert.deepEqual(await verdict("b"), { tag: "change", val: '{"n":1}' });
  assert.deepEqual(await verdict("c"), { tag: "refuse", val: { message: "no", metadata: [] } });
  assert.equal((await failure(verdict("d"))).tag, "other");
  assert.deepEqual(await calls.on("after-run", "{}"), { tag: "proceed" });
  assert.throws(() => describe({ hooks: { "before-breakfast": hooks["before-tool-call"] } }), /is not a point of a run/);
});

test("a connector sends and receives", async () => {
  const connector = connect({
    description: "Sends.",
    modes: ["sync", "callback"],
    config: { url: text() },
    send: ({ input, config, callback }) => (callback ? accepted() : { to: config.url, ...input }),
    receive: (_request, body) => body[0],
  });
  assert.deepEqual(describe({ connector }).connector.modes, ["sync", "callback"]);
  const calls = connectorCalls({ connector });
  const request = { input: '{"a": 1}', config: '{"url": "u"}', metadata: [] };
  assert.deepEqual(await calls.send(request), { tag: "done", val: '{"to":"u","a":1}' });
  assert.deepEqual(await calls.send({ ...request, callback: { url: "c", session: "s" } }), { tag: "accepted" });
  assert.equal(await calls.receive(request, "[7]"), "7");
  assert.equal((await failure(calls.send({ ...request, config: "{}" }))).tag, "invalid-input");
});

test("facts of an error reach the host", async () => {
  const run = () => { throw new PluginError("oh", { status: 503 }); };
  const payload = await failure(toolCalls({ tools: { bad: tool({ description: "", run }) } }).call("bad", "{}"));
  assert.deepEqual(payload, { tag: "other", val: { message: "oh", metadata: [["status", "503"]] } });
});

test("an error says where in the author's code it happened", () => {
  globalThis.__hotcellPlaces = { sources: ["src/plugin.ts"], lines: { 7: [[0, 0, 3, 1], [10, 0, 3, 8]] } };
  const thrown = (stack) => toHost(Object.assign(new TypeError("no"), { stack })).payload.val.message;
  assert.equal(thrown("send@plugin.js:2:1\nrun@plugin.js:7:12\n"), "TypeError: no (src/plugin.ts:3:8)");
  assert.equal(thrown("TypeError: no\n    at run (file:///w/plugin.mjs:7:10)"), "TypeError: no (src/plugin.ts:3:1)");
  assert.equal(thrown("run@plugin.js:8:1"), "TypeError: no");
  assert.equal(thrown(undefined), "TypeError: no");
  delete globalThis.__hotcellPlaces;
});
