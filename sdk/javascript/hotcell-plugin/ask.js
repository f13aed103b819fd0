// Questions to the person the graph works for. Capability `ask`.

import { ask as put } from "hotcell:plugin/ask@0.2.0";
import { fromHost } from "./errors.js";

export function ask(question) {
  return fromHost(() => put(question));
}
