/**
 * A placeholder for the secret `name`. On the way out to a server the secret is granted for, it is replaced by the
 * value; everywhere else it stays a meaningless text.
 */
export function placeholder(name: string): string;
