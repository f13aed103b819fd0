/** Says that `done` of `total` steps are done; `total` is undefined where it is not known. */
export function report(done: number, total?: number, message?: string): void;
