function inner() {
  throw new TypeError("no such colour");
}
inner();
