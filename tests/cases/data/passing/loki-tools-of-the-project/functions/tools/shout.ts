/**
 * Shout a text.
 * @param text what is shouted
 */
export function run(text: string): string {
  return `${text.toUpperCase()}!`;
}
