// Settings that the operator wrote for this plugin in `hotcell.toml`.

import { get as setting } from "hotcell:plugin/config@0.2.0";
import { InvalidInput } from "./errors.js";

export function get(key, otherwise) {
  return setting(key) ?? otherwise;
}

export function require(key) {
  const found = setting(key);
  if (found === undefined || found === null) {
    throw new InvalidInput(`the setting \`${key}\` is missing; write it into \`hotcell.toml\` for this plugin`);
  }
  return found;
}
