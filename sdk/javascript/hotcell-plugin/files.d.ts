/**
 * Files in the directories that the operator granted. Capability `fs`, with the paths that the plugin uses:
 * `fs = [{ guest = "/data", access = "read", why = "…" }]` under `[capabilities]` in plugin.toml.
 */

/** The contents of a file. Throws `InvalidInput` where there is none. */
export function read(path: string): Uint8Array;
/** The contents of a file as text. */
export function readText(path: string): string;
/** Writes a file, in the place of what was there. */
export function write(path: string, contents: string | Uint8Array): void;
/** The names in a directory, sorted; those of directories end with `/`. */
export function entries(path: string): string[];
/** Makes a directory in one that is there. */
export function makeDirectory(path: string): void;
/** Removes a file, or a directory that is empty. */
export function remove(path: string): void;
