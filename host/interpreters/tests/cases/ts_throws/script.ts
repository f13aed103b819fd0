interface Unused { a: string }

function check(value: number): never {
  throw new Error(`bad ${value}`);
}
check(4);
