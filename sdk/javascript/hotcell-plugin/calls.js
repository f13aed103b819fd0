// Calls of the host, from JSON texts to functions and back.

import { InvalidInput, PluginError, toHost } from "./errors.js";
import { check } from "./shapes.js";

/** Runs a call and turns what it throws into what the host understands. */
export async function answer(call) {
  try {
    return await call();
  } catch (thrown) {
    throw toHost(thrown);
  }
}

/** A JSON text as a value. */
export function parse(json, what) {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new InvalidInput(`${what} is not JSON: ${error.message}`);
  }
}

/** A value as JSON text; nothing at all is `null`. */
export function write(value, what) {
  let json;
  try {
    json = JSON.stringify(value === undefined ? null : value);
  } catch (error) {
    throw new PluginError(`${what} cannot be written as JSON: ${error.message}`);
  }
  if (json === undefined) throw new PluginError(`${what} cannot be written as JSON: it is a ${typeof value}`);
  return json;
}

/** A JSON text as an object that fits a schema. */
export function read(schema, json, what, where = "") {
  return check(schema, parse(json, what), where);
}

/** The member of that name, or `InvalidInput` with the names there are. */
export function pick(members, name, what) {
  if (members !== undefined && Object.hasOwn(members, name)) return members[name];
  const names = Object.keys(members ?? {}).map((one) => `\`${one}\``);
  throw new InvalidInput(`there is no ${what} \`${name}\`; there are: ${names.join(", ") || "none"}`);
}

/** Whether a value is an object and no list. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
