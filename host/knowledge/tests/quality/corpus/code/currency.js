const RATES = { SEK: 11.42, DKK: 7.46, NOK: 11.61 };

/** Turns euro cents into the smallest unit of another money. */
export function convertCents(cents, to) {
  const rate = RATES[to];
  if (!rate) throw new RangeError(`UNKNOWN_CURRENCY: ${to}`);
  return Math.round(cents * rate);
}
