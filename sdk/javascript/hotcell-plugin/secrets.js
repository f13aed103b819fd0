// Secrets of the operator's, which never enter the plugin. Capability `secret`.

import { placeholder as find } from "hotcell:plugin/secrets@0.2.0";
import { fromHost } from "./errors.js";

export function placeholder(name) {
  return fromHost(() => find(name));
}
