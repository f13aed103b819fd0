// The model of the run. Capability `llm`; calls count against the run's budget.

import { complete as ask } from "hotcell:plugin/llm@0.2.0";
import { fromHost } from "./errors.js";

export function complete(prompt, { system, ...request } = {}) {
  const messages = system === undefined ? [] : [{ role: "system", content: system }];
  messages.push({ role: "user", content: prompt });
  return send({ messages, ...request }).text;
}

export function send(request) {
  return JSON.parse(fromHost(() => ask(JSON.stringify(request))));
}
