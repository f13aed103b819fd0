// A small store of the plugin's own that outlives the call and the run. Capability `kv`.

import * as store from "hotcell:plugin/kv@0.2.0";
import { fromHost } from "./errors.js";

export function get(key) {
  return fromHost(() => store.get(key)) ?? undefined;
}

export function getText(key) {
  const found = get(key);
  return found === undefined ? undefined : new TextDecoder().decode(found);
}

export function getJson(key) {
  const found = getText(key);
  return found === undefined ? undefined : JSON.parse(found);
}

export function set(key, value) {
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
  fromHost(() => store.set(key, bytes));
}

export function setJson(key, value) {
  set(key, JSON.stringify(value));
}

export function remove(key) {
  fromHost(() => store.delete(key));
}

export function keys(prefix = "") {
  return fromHost(() => store.keys(prefix));
}
