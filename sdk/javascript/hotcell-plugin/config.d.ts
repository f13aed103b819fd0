/** The setting of that name, or `otherwise`. */
export function get(key: string): string | undefined;
export function get(key: string, otherwise: string): string;
/** The setting of that name; `InvalidInput` says which one is missing. */
export function require(key: string): string;
