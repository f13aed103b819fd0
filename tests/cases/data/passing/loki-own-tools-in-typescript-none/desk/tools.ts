function add(a: number): number {
  return a;
}
