import data from "./secrets.json";
export function f(): string { return data.key; }
