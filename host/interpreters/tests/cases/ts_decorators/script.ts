function upper(_target: object, _key: string, descriptor: PropertyDescriptor) {
  const original = descriptor.value;
  descriptor.value = function (...values: unknown[]) { return String(original.apply(this, values)).toUpperCase(); };
}
const seal = (name: string) => (target: Function) => { (target as any).sealed = name; };
@seal("yes") class Greeter { constructor(private who: string) {} @upper greet(): string { return `hi ${this.who}`; } }
console.log(new Greeter("bo").greet(), (Greeter as any).sealed);
