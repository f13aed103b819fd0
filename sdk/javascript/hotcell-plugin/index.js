// What a plugin is declared with. Nothing here needs a cell, so tests can call `tools.NAME.run(…)` as it is.

export { any, boolean, choice, integer, list, map, nullable, number, object, optional, text } from "./shapes.js";
export { Denied, InvalidInput, PluginError, Unavailable } from "./errors.js";

import { asSchema } from "./shapes.js";

const POINTS = ["run", "node", "model-call", "tool-call", "agent-call", "question", "skill-load", "skill-unload"]
  .flatMap((what) => [`before-${what}`, `after-${what}`])
  .concat("node-failed");

/** A tool: `{ description, parameters, returns, readOnly, run(arguments) }`. */
export function tool({ description = "", parameters = {}, returns, readOnly = false, run }) {
  needsFunction(run, "a tool", "run");
  return {
    description,
    schema: asSchema(parameters, "the parameters of a tool"),
    returns: returns === undefined ? undefined : asSchema(returns, "the result of a tool"),
    readOnly,
    run,
  };
}

/** A node type: `{ description, fields, inputs, outputs, branches, run(fields, inputs) }`. */
export function node({ description = "", fields = {}, inputs, outputs, branches = [], run }) {
  needsFunction(run, "a node type", "run");
  const open = (shape, what) => (shape === undefined ? { type: "object" } : asSchema(shape, what, { open: true }));
  return {
    description,
    fields: open(fields, "the fields of a node type"),
    inputs: open(inputs, "the inputs of a node type"),
    outputs: outputs === undefined ? undefined : asSchema(outputs, "the outputs of a node type"),
    branches,
    run,
  };
}

/** What running a node gave, with the branch to leave by. */
export class Outcome {
  constructor(outputs, branch, metadata = {}) {
    this.outputs = outputs;
    this.branch = branch;
    this.metadata = metadata;
  }
}

/** The same in one word, for the end of `run`. */
export function outcome(outputs, branch, metadata) {
  return new Outcome(outputs, branch, metadata);
}

/** A hook: `{ description, run(event) }`; `run` returns `proceed()` or nothing, `change(event)` or `refuse(reason)`. */
export function hook({ description = "", run }) {
  needsFunction(run, "a hook", "run");
  return { description, run };
}

/** The event goes on as it is. */
export function proceed() {
  return { verdict: "proceed" };
}

/** The event goes on with this object in its place. */
export function change(event) {
  return { verdict: "change", event };
}

/** The event does not go on, for this reason. */
export function refuse(reason) {
  return { verdict: "refuse", reason };
}

const ACCEPTED = Symbol.for("hotcell.accepted");

/** From `send`: the request was taken, and the answer comes by the callback. */
export function accepted() {
  return ACCEPTED;
}

/** A connector: `{ description, modes, config, send(request), receive(request, body) }`. */
export function connect({ description = "", modes = ["sync"], config, send, receive = (_request, body) => body }) {
  needsFunction(send, "a connector", "send");
  needsFunction(receive, "a connector", "receive");
  for (const mode of modes) {
    if (mode !== "sync" && mode !== "callback") {
      throw new Error(`\`${mode}\` is not a mode of a connector; there are \`sync\` and \`callback\``);
    }
  }
  const schema = config === undefined ? undefined : asSchema(config, "the configuration of a connector");
  return { description, modes, config: schema, send, receive };
}

/** What a module offers, in the form of the description. Called while a plugin is built. */
export function describe(plugin) {
  const name = (one, what) => {
    if (!/^[A-Za-z0-9_.-]{1,64}$/.test(one)) {
      throw new Error(`the ${what} name \`${one}\` is not made of 1 to 64 letters, digits, \`_\`, \`-\` and \`.\``);
    }
    return one;
  };
  const made = (value, key, maker) => {
    if (typeof value?.run !== "function") throw new Error(`\`${key}\` is not made with \`${maker}({…})\``);
    return value;
  };
  const offered = {};
  const tools = Object.entries(plugin.tools ?? {}).map(([key, value]) => ({
    name: name(key, "tool"),
    description: made(value, key, "tool").description,
    ...(value.readOnly ? { read_only: true } : {}),
    parameters: value.schema,
    ...(value.returns ? { returns: value.returns } : {}),
  }));
  const nodes = Object.entries(plugin.nodes ?? {}).map(([key, value]) => ({
    type: name(key, "node type"),
    description: made(value, key, "node").description,
    fields: value.fields,
    inputs: value.inputs,
    ...(value.outputs ? { outputs: value.outputs } : {}),
    ...(value.branches.length > 0 ? { branches: value.branches } : {}),
  }));
  const hooks = Object.entries(plugin.hooks ?? {}).map(([point, value]) => {
    if (!POINTS.includes(point)) throw new Error(`\`${point}\` is not a point of a run; there are: ${POINTS.join(", ")}`);
    return { point, description: made(value, point, "hook").description };
  });
  if (tools.length > 0) offered.tools = tools;
  if (nodes.length > 0) offered.nodes = nodes;
  if (hooks.length > 0) offered.hooks = hooks;
  if (plugin.connector !== undefined) {
    const { description, modes, config, send } = plugin.connector;
    if (typeof send !== "function") throw new Error("`connector` is not made with `connect({…})`");
    offered.connector = { description, modes, ...(config ? { config } : {}) };
  }
  offered.script = typeof plugin.script === "function";
  return offered;
}

function needsFunction(value, what, name) {
  if (typeof value !== "function") throw new Error(`${what} needs a function \`${name}\``);
}
