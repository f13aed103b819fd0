// How far long work has come.

import { report as send } from "hotcell:plugin/progress@0.2.0";

const steps = (count) => BigInt(Math.max(0, Math.trunc(count)));

export function report(done, total, message = "") {
  send(steps(done), total === undefined || total === null ? undefined : steps(total), String(message));
}
