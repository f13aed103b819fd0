import { rate, kept } from "./lib/rates.ts";

const fee = await Promise.resolve(3);
// What is due before the file has been described says nothing about it.
setTimeout(() => console.log("due"), 0);

/**
 * Says what things cost.
 * @param count how many
 */
export async function price(count: number): Promise<number> {
  return count * rate + fee + (await kept());
}

/** Refuses. */
export async function refuse(): Promise<string> {
  throw new Error(await Promise.resolve("closed today"));
}
