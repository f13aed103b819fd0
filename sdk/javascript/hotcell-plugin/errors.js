// What a plugin throws when something does not work, and what the host's functions throw.

import { place } from "./places.js";

/** Something did not work. Thrown as it is, it reaches the host as `other`. `facts` are shown beside the message. */
export class PluginError extends Error {
  constructor(message, facts = {}) {
    super(message);
    this.name = new.target.name;
    this.facts = facts;
  }
  get kind() {
    return "other";
  }
}

/** The caller gave something that cannot be used; the same call will fail again. */
export class InvalidInput extends PluginError {
  get kind() {
    return "invalid-input";
  }
}

/** A capability was not granted; the message names it. */
export class Denied extends PluginError {
  get kind() {
    return "denied";
  }
}

/** Something outside is not to be had at the moment; a later call may work. */
export class Unavailable extends PluginError {
  get kind() {
    return "unavailable";
  }
}

const KINDS = { "invalid-input": InvalidInput, denied: Denied, unavailable: Unavailable };

/** Calls a function of the host and throws its errors as those of this module. */
export function fromHost(call) {
  try {
    return call();
  } catch (thrown) {
    const failure = thrown?.payload?.val;
    if (typeof failure?.message !== "string") throw thrown;
    const Kind = KINDS[thrown.payload.tag] ?? PluginError;
    throw new Kind(failure.message, Object.fromEntries(failure.metadata ?? []));
  }
}

/** What was thrown, in the form in which the bindings hand it to the host. */
export function toHost(thrown) {
  const failure = (message, metadata = []) => ({ message, metadata });
  if (thrown instanceof PluginError) {
    const facts = Object.entries(thrown.facts).map(([name, value]) => [name, String(value)]);
    return payload(thrown.kind, failure(thrown.message, facts));
  }
  const words = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
  const where = place(thrown);
  return payload("other", failure(where === undefined ? words : `${words} (${where})`));
}

function payload(tag, val) {
  return Object.assign(new Error(val.message), { payload: { tag, val } });
}
