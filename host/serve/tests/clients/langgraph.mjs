// Drives a server with `@langchain/langgraph-sdk`: threads, runs, streams and interrupts. The arguments are the folder with the package
// and the server's address.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [folder, apiUrl] = process.argv.slice(2);
const { Client } = createRequire(`${folder}/x.js`)("@langchain/langgraph-sdk");
const client = new Client({ apiUrl });

/// Everything that a stream tells.
async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

// Assistants
const found = await client.assistants.search({ limit: 50 });
assert.deepEqual(found.map((one) => one.assistant_id), ["ask", "count", "echo", "slow"]);
assert.equal((await client.assistants.getVersions("echo")).length, 1);
assert.ok((await client.assistants.getGraph("slow")).edges.length >= 4);

// A thread keeps its state from run to run, and each state names the one before it
let { thread_id } = await client.threads.create({ metadata: { who: "me" } });
for (const n of [1, 2]) {
  const input = { messages: [{ role: "user", content: "more" }] };
  assert.equal((await client.runs.wait(thread_id, "count", { input })).n, n);
}
const history = await client.threads.getHistory(thread_id);
assert.deepEqual(history.map((state) => state.values.n), [2, 2, 1, 1]);
assert.deepEqual(history.map((state) => state.parent_checkpoint ?? null), [...history.slice(1).map((state) => state.checkpoint), null]);
const then = await client.threads.getState(thread_id, history[3].checkpoint);
assert.equal(then.values.n, 1);
const threads = await client.threads.search({ metadata: { who: "me" }, status: "idle", values: { n: 2 } });
assert.deepEqual(threads.map((thread) => [thread.thread_id, thread.values.n]), [[thread_id, 2]]);
await client.threads.updateState(thread_id, { values: { n: 7 } });
assert.equal((await client.threads.getState(thread_id)).values.n, 7);

// A person is asked; a command answers
({ thread_id } = await client.threads.create());
const asks = await client.runs.wait(thread_id, "ask", { input: {} });
assert.equal(asks.__interrupt__[0].value.text, "Who asks?");
assert.equal((await client.threads.get(thread_id)).status, "interrupted");
const parts = await all(client.runs.stream(thread_id, "ask", { command: { resume: "Ada" }, streamMode: ["values", "updates"] }));
assert.equal(parts.filter((part) => part.event === "values").at(-1).data.__output__, "hello Ada");

// A run is joined from its beginning
const run = await client.runs.create(thread_id, "ask", { input: {} });
const joined = await all(client.runs.joinStream(thread_id, run.run_id, { streamMode: ["values", "updates"], lastEventId: "-1" }));
assert.ok(joined.some((part) => part.event === "updates" && part.data.__interrupt__), JSON.stringify(joined));
await client.runs.cancel(thread_id, run.run_id, true);
await client.threads.delete(thread_id);
await assert.rejects(client.threads.get(thread_id));

// The store
await client.store.putItem(["a", "b"], "k", { x: 1 });
assert.equal((await client.store.searchItems(["a"], { filter: { x: 1 } })).items.length, 1);
await client.store.deleteItem(["a", "b"], "k");

console.log("driven");
