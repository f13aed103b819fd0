import { InvalidInput } from "hotcell-plugin";
import * as state from "hotcell-plugin/state";

/** Greets whoever the state names. What it returns is merged into the graph's state. */
export function script(): Record<string, unknown> {
  const name: unknown = state.get("person.name");
  if (typeof name !== "string") throw new InvalidInput("`person.name` is missing in the state");
  return { greeting: `Hello, ${name}!` };
}
