// Notes for whoever watches the run. They never become part of the result.

import { log } from "hotcell:plugin/log@0.2.0";

export const trace = (message) => log("trace", String(message));
export const debug = (message) => log("debug", String(message));
export const info = (message) => log("info", String(message));
export const warn = (message) => log("warn", String(message));
export const error = (message) => log("error", String(message));
