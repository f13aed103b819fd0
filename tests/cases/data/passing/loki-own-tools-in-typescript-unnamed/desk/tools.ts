/** Adds. */
export function add({ a, b }: { a: number; b: number }): number {
  return a + b;
}
