/** The bytes under `key`, or undefined. A key has 1 to 256 bytes. */
export function get(key: string): Uint8Array | undefined;
/** The text under `key`, or undefined. */
export function getText(key: string): string | undefined;
/** The JSON value under `key`, or undefined. */
export function getJson(key: string): any;
/** Puts `value` under `key`, in the place of what was there. */
export function set(key: string, value: Uint8Array | string): void;
/** Puts a JSON value under `key`. */
export function setJson(key: string, value: unknown): void;
/** Removes what is under `key`; without anything there it does nothing. */
export function remove(key: string): void;
/** The keys that begin with `prefix`, in order, 1,000 at most. */
export function keys(prefix?: string): string[];
