// Files in the directories that the operator granted. Capability `fs`.

import * as host from "./host-files.js";
import { fromHost } from "./errors.js";

export function read(path) {
  return fromHost(() => host.read(path));
}

export function readText(path) {
  return new TextDecoder().decode(read(path));
}

export function write(path, contents) {
  const bytes = typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
  fromHost(() => host.write(path, bytes));
}

export function entries(path) {
  return fromHost(() => host.entries(path)).sort();
}

export function makeDirectory(path) {
  fromHost(() => host.makeDirectory(path));
}

export function remove(path) {
  fromHost(() => host.remove(path));
}
