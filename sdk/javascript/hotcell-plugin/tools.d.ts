/** Calls the tool `name` and gives its result. */
export function call(name: string, args?: Record<string, unknown>): any;
