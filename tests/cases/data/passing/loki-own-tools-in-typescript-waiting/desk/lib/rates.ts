export let rate = 0;
const table: { [name: string]: number } = { low: 4, high: 10 };

for (const name of ["low", "high"]) {
  rate = await Promise.resolve(table[name]);
}
try {
  await Promise.reject(new Error("no rates"));
} catch (error) {
  if (error instanceof Error) { rate = await Promise.resolve(rate + 1); }
}

/** What is kept of it, which waits when it is called. */
export async function kept(): Promise<number> {
  if (rate > 0) { return await Promise.resolve(2); }
  return 0;
}
