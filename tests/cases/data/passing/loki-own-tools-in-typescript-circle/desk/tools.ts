import { a } from "./a.ts";
export function f(): string { return a(); }
