// Drives a server with `@ag-ui/client`: runs, threads, reasoning, interrupts and errors. The arguments are the folder with the
// package and the server's address.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [folder, url] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${folder}/x.js`)("@ag-ui/client");

const agent = (name) => new HttpAgent({ url: `${url}/ag-ui/${name}` });
let messages = 0;
const user = (content) => ({ id: `m${++messages}`, role: "user", content });

/// Runs an agent, and gives the kinds of its events beside what came of it.
async function run(agent, parameters = {}) {
  const kinds = [];
  const done = await agent.runAgent(parameters, { onEvent: ({ event }) => void kinds.push(event.type) });
  return { ...done, kinds };
}

// A reply is a message, and the result
const echo = agent("echo");
echo.addMessage(user("hi"));
let done = await run(echo);
assert.equal(done.result, "you said hi");
assert.deepEqual(done.newMessages.map(({ role, content }) => [role, content]), [["assistant", "you said hi"]]);
assert.deepEqual(done.kinds.slice(0, 1), ["RUN_STARTED"]);
assert.deepEqual(done.kinds.slice(-1), ["RUN_FINISHED"]);

// The thread keeps what was said
const count = agent("count");
for (const number of ["1", "2"]) {
  count.addMessage(user("more"));
  assert.equal((await run(count)).result, number);
}

// A question is an interrupt; the next run resumes it
const ask = agent("ask");
ask.addMessage(user("hi"));
await run(ask);
assert.equal(ask.pendingInterrupts.length, 1);
const [interrupt] = ask.pendingInterrupts;
assert.equal(interrupt.message, "Who asks?");
assert.equal(interrupt.reason, "question");
assert.deepEqual(interrupt.responseSchema, { type: "string" });
done = await run(ask, { resume: [{ interruptId: interrupt.id, status: "resolved", payload: "Ada" }] });
assert.equal(done.result, "hello Ada");
assert.equal(ask.pendingInterrupts.length, 0);

// One that is abandoned cancels the run, and the thread is free again
ask.addMessage(user("again"));
await run(ask);
const [second] = ask.pendingInterrupts;
done = await run(ask, { resume: [{ interruptId: second.id, status: "cancelled" }] });
assert.equal(done.result, undefined);
ask.addMessage(user("again"));
await run(ask);
assert.equal(ask.pendingInterrupts.length, 1);

// What models say meanwhile is reasoning
const slow = agent("slow");
slow.addMessage(user("x"));
done = await run(slow);
assert.equal(done.result, "reply1 reply2");
const reasoning = done.newMessages.filter(({ role }) => role === "reasoning").map(({ content }) => content);
assert.deepEqual(reasoning, ["reply1\n\nreply2"]);
assert.ok(done.kinds.includes("STEP_FINISHED"));

// What is not done is refused
await assert.rejects(run(agent("nobody")), /404/);
const tools = agent("echo");
tools.addMessage(user("x"));
await assert.rejects(run(tools, { tools: [{ name: "x", description: "x" }] }), /422/);

console.log("driven");
