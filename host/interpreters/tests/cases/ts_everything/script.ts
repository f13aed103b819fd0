import { readFileSync } from "fs";
import type { Stats } from "fs";
enum Grade { Poor = 1, Fair, Good = "good".length }
const enum Flag { A = 1 << 0, B = 1 << 1, Both = A | B }
namespace Shapes { export const sides = 4; export namespace Inner { export const name = "inner"; } export function area(a: number): number { return a * sides; } }
abstract class Base<T extends object = {}> { protected constructor(readonly id: number, private label?: string) {} abstract go(): string; get shown(): string { return `${this.id}:${this.label ?? "-"}`; } }
class Thing extends Base { declare ghost: string; static count: number = 0; public extra!: string; constructor(id: number, override readonly tag = "t") { super(id, "lab"); Thing.count++; } override go(): string { return this.shown + this.tag; } }
interface Row { [field: string]: unknown }
type Fn = <K extends keyof Row>(row: Row, key: K) => Row[K];
const pick: Fn = (row, key) => row[key];
function over(x: string): string; function over(x: number): number; function over(x: any): any { return x; }
const table = { poor: Grade.Poor, fair: Grade.Fair } satisfies Record<string, Grade>;
const list = <const T extends readonly unknown[]>(x: T): T => x;
function assertString(x: unknown): asserts x is string { if (typeof x !== "string") throw new Error("no"); }
let maybe: string | undefined = process.env.NOTHING!;
const angle = <number>5;
const tuple: [first: string, second?: number] = ["a"];
console.log(JSON.stringify({ grade: Grade[2], table, flag: Flag.Both, area: Shapes.area(3), inner: Shapes.Inner.name, go: new Thing(1).go(), n: Thing.count,
  pick: pick({ a: 1 }, "a"), over: over("o"), list: list([1, 2]), angle, tuple, maybe: maybe ?? null, fs: typeof readFileSync }));
export {};
