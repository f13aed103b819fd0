// The graph's state, read lazily. For scripts and nodes.

import * as state from "hotcell:plugin/state@0.2.0";

export function get(path, otherwise) {
  const found = state.get(path);
  return found === undefined || found === null ? otherwise : JSON.parse(found);
}

export function all() {
  return JSON.parse(state.all());
}
