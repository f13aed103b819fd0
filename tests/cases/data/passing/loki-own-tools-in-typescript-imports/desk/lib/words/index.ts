let times = 0;
export function shout(text: string): string { times += 1; return text.toUpperCase(); }
export { times as counted };
