// One call outside a cell, by node. The call is the first line of standard input; what the plugin asks of the host goes out as
// a line, and the answer comes back as one. `hotcell plugin test --fast` is at the other end.

import { readSync, writeSync } from "node:fs";

const KINDS = ["invalid-input", "denied", "unavailable"];
let read = Buffer.alloc(0);

function line() {
  const part = Buffer.alloc(65536);
  for (;;) {
    const end = read.indexOf(10);
    if (end >= 0) {
      const found = read.subarray(0, end).toString();
      read = read.subarray(end + 1);
      return JSON.parse(found);
    }
    const count = readSync(0, part);
    if (count === 0) throw new Error("the host went away");
    read = Buffer.concat([read, part.subarray(0, count)]);
  }
}

function say(said) {
  let bytes = Buffer.from(`${JSON.stringify(said)}\n`);
  while (bytes.length > 0) bytes = bytes.subarray(writeSync(1, bytes));
}

function ask(name, args) {
  say({ ask: { function: name, arguments: args } });
  const { error, value } = line();
  if (error === undefined) return value;
  const val = { message: error.message, metadata: [] };
  throw Object.assign(new Error(error.message), { payload: { tag: KINDS.includes(error.kind) ? error.kind : "other", val } });
}

/** The functions of the host, by interface. */
export const functions = {
  log: { log: (level, message) => say({ log: { level, message } }) },
  progress: { report: (done, total, message) => say({ progress: { done: Number(done), total: total === undefined ? null : Number(total), message } }) },
  config: { get: (key) => ask("config.get", { key }) ?? undefined },
  state: { get: (path) => ask("state.get", { path }) ?? undefined, all: () => ask("state.all", {}) },
  ask: { ask: (question) => ask("ask.ask", { question }) },
  secrets: { placeholder: (name) => ask("secrets.placeholder", { name }) },
  llm: { complete: (request) => ask("llm.complete", { request }) },
  "other-tools": { call: (name, args) => ask("other_tools.call", { name, arguments: args }) },
  files: {
    read: (path) => Uint8Array.from(ask("files.read", { path })),
    write: (path, contents) => ask("files.write", { path, contents: [...contents] }),
    entries: (path) => ask("files.entries", { path }),
    makeDirectory: (path) => ask("files.make_directory", { path }),
    remove: (path) => ask("files.remove", { path }),
  },
  kv: {
    get: (key) => {
      const found = ask("kv.get", { key });
      return found === null ? undefined : Uint8Array.from(found);
    },
    set: (key, value) => ask("kv.set", { key, value: [...value] }),
    delete: (key) => ask("kv.delete", { key }),
    keys: (prefix) => ask("kv.keys", { prefix }),
  },
};

/** The `fetch` of a cell: it sends what was granted, and nothing else. */
async function send(input, options) {
  const request = new Request(input, options);
  const headers = Object.fromEntries(request.headers);
  const body = await request.text();
  try {
    const reply = ask("http.send", { method: request.method, url: request.url, headers, body });
    const none = [101, 204, 205, 304].includes(reply.status);
    return new Response(none ? null : reply.body, { status: reply.status, headers: reply.headers });
  } catch (error) {
    throw new TypeError(error.message);
  }
}

async function perform(order, exports) {
  if (order.tool) return { text: await exports.tool.call(order.tool.name, order.tool.arguments) };
  if (order.node) {
    const { outputs, branch } = await exports.node.run(order.node.type, order.node.fields, order.node.inputs);
    return { outcome: { outputs, branch: branch ?? null } };
  }
  if (order.hook) {
    const { tag, val } = await exports.hooks.on(order.hook.point, order.hook.event);
    return tag === "proceed" ? { proceed: null } : tag === "change" ? { change: val } : { refuse: val.message };
  }
  if (order.connector) {
    const { input, config, callback, body } = order.connector;
    const request = { input, config, callback: callback ?? undefined, metadata: [] };
    if (body !== null) return { text: await exports.connector.receive(request, body) };
    const { tag, val } = await exports.connector.send(request);
    return tag === "accepted" ? { accepted: null } : { text: val };
  }
  return { text: await exports.script.run() };
}

/** Makes the call; `exports` are the interfaces by the kind of plugin. */
export async function start(exports) {
  for (const level of ["log", "info", "debug"]) console[level] = console.error;
  globalThis.fetch = send;
  try {
    say(await perform(line(), exports));
  } catch (thrown) {
    const { tag, val } = thrown?.payload ?? {};
    say({ failed: { kind: tag ?? "other", message: val?.message ?? String(thrown?.stack ?? thrown) } });
  }
}
