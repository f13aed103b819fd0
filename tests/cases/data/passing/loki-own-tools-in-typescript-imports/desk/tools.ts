#!/usr/bin/env tsx
import { basename } from "node:path";
import Till, {
  price, // with everything
  Speed,
  type Row,
} from "./lib/money.ts";
import * as words from "./lib/words";
import type { Place } from "./lib/places.js";

/** Say what something costs.
 * @param count - How many
 */
export async function cost(count: number, speed: Speed = Speed.Slow, to?: Place): Promise<string> {
  const row: Row = { amount: price(count, speed) };
  return `${new Till(row.amount)} ${words.shout(to?.town ?? basename("/nowhere/here"))} ${words.counted}`;
}
