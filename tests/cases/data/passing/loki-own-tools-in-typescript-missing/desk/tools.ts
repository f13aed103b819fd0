import { a } from "./lib/a.ts";
export function f(): string { return a(); }
