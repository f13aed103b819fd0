// Where in the author's code something went wrong: the places that an engine names are those of the bundle, which ends with
// a table that leads back from there.

// `name@file:1:2` of the engine in a cell, and `    at name (file:1:2)` of node.
const FRAME = /^(?:\s+at |.*@).*?:(\d+):(\d+)\)?$/;
/** Frames that are looked at, from the innermost one. */
const MOST_FRAMES = 32;

/** The innermost place in the author's code that an error came through, as `src/plugin.ts:3:7`. */
export function place(error) {
  const table = globalThis.__hotcellPlaces;
  if (table === undefined || typeof error?.stack !== "string") return undefined;
  for (const frame of error.stack.split("\n", MOST_FRAMES)) {
    const [, line, column] = FRAME.exec(frame) ?? [];
    const found = table.lines[line]?.findLast(([from]) => from < Number(column));
    if (found !== undefined) return `${table.sources[found[1]]}:${found[2]}:${found[3]}`;
  }
  return undefined;
}
