#!/usr/bin/env tsx
import { createHash } from "node:crypto";

type Level = "low" | "high"
enum Unit { Piece = "piece", Box = "box" }

interface Place {
  /** The town */
  town: string; // as people call it
  street?: string
  floor:
    | number
    | null
}

console.log("loaded");

/**
 * Say what something costs,
 * with everything on top.
 *
 * @param item - What is wanted
 * @param {number} count - How many,
 *   in units
 * @param level - How fast
 * @returns the price
 */
export async function price(
  item: string,
  count = 1, // (one) if nobody says
  level?: Level,
  unit: Unit = Unit.Piece,
  extras: Array<"wrap" | "card"> = [],
  place?: Place,
): Promise<string> {
  const list: Record<string, number> = { book: 200, pen: 20 };
  if (!(item in list)) throw new RangeError(`no price for ${item}`);
  console.log("counting");
  await Promise.resolve();
  return `${list[item] * count + extras.length * 10} NOK${level === "high" ? "!" : ""} ${unit}${place ? ` to ${place.town}` : ""}`;
}

/** Return the notes as they are. */
export function notes(): object {
  return { open: ["call Åse"], agent: process.env.LLM_AGENT_NAME, hash: createHash("sha256").update("x").digest("hex").slice(0, 4) };
}

/** Not for models. */
export function _hidden(): void {}

function inner(text: string): string { return text; }
