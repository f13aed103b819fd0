// Tools of other plugins within reach of the run. Capability `tool`; calls count against the run's budget.

import { call as send } from "hotcell:plugin/other-tools@0.2.0";
import { fromHost } from "./errors.js";

export function call(name, args = {}) {
  return JSON.parse(fromHost(() => send(name, JSON.stringify(args))));
}
