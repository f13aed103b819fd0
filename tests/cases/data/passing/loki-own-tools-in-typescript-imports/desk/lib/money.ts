import { createHash } from "node:crypto";
import rates, { base } from "./rates.mjs";
export * from "./words.js";

// export const price = "not this one";
export enum Speed { Slow = "slow", Fast = "fast" }
export interface Row { amount: number }
const quote = /["'`]/g;
export const note = `
export const price = ${quote.source};
`;
export const price = (count: number, speed: Speed): number => count * rates.one * (speed === Speed.Fast ? 2 : 1);
export default class Till {
  constructor(private readonly amount: number) {}
  toString(): string { return `${this.amount} ${base} ${createHash("sha256").update("x").digest("hex").slice(0, 4)}`; }
}
