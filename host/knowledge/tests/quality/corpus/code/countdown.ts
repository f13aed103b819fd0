export function minutesToDeparture(departure: Date, now: Date = new Date()): number {
  // Gates close five minutes before the ship leaves.
  const closing = departure.getTime() - 5 * 60_000;
  return Math.max(0, Math.floor((closing - now.getTime()) / 60_000));
}
