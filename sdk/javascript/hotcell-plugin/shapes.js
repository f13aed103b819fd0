// Shapes of values: each is a JSON schema, and values are checked against it by the same words.

import { InvalidInput } from "./errors.js";

class Shape {
  constructor(schema, isOptional = false) {
    this.schema = schema;
    this.isOptional = isOptional;
  }
}

const shape = (schema, description) => new Shape(description === undefined ? schema : { ...schema, description });

/** A text. */
export const text = (description) => shape({ type: "string" }, description);
/** A number. */
export const number = (description) => shape({ type: "number" }, description);
/** A whole number. */
export const integer = (description) => shape({ type: "integer" }, description);
/** True or false. */
export const boolean = (description) => shape({ type: "boolean" }, description);
/** Any JSON value. */
export const any = (description) => shape({}, description);
/** One of these values. */
export const choice = (values, description) => shape({ enum: [...values] }, description);
/** A list of such items. */
export const list = (item, description) => shape({ type: "array", items: item.schema }, description);
/** An object with any keys and such values. */
export const map = (value, description) => shape({ type: "object", additionalProperties: value.schema }, description);
/** An object with these fields and no others. */
export const object = (fields, description) => shape(asSchema(fields, "an object"), description);
/** Such a value or null. */
export const nullable = (value) => new Shape({ anyOf: [value.schema, { type: "null" }] });

/** A field that may be left out; `value` then takes its place. */
export function optional(inner, value) {
  return new Shape(value === undefined ? inner.schema : { ...inner.schema, default: value }, true);
}

/** The JSON schema of an object: from fields made of shapes, or given as one. */
export function asSchema(fields, what, { open = false } = {}) {
  if (fields instanceof Shape) return fields.schema;
  if (typeof fields?.type === "string") return fields;
  const schema = { type: "object", properties: {} };
  const required = [];
  for (const [name, field] of Object.entries(fields)) {
    if (!(field instanceof Shape)) {
      throw new Error(`${what}: \`${name}\` is not a shape; use \`text()\`, \`number()\`, \`list(…)\` and the like`);
    }
    schema.properties[name] = field.schema;
    if (!field.isOptional) required.push(name);
  }
  if (required.length > 0) schema.required = required;
  if (!open) schema.additionalProperties = false;
  return schema;
}

const WORDS = {
  string: ["a text", (value) => typeof value === "string"],
  number: ["a number", (value) => typeof value === "number"],
  integer: ["a whole number", (value) => Number.isInteger(value)],
  boolean: ["true or false", (value) => typeof value === "boolean"],
  null: ["null", (value) => value === null],
  array: ["a list", (value) => Array.isArray(value)],
  object: ["an object", (value) => typeof value === "object" && value !== null && !Array.isArray(value)],
};

function shown(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  const json = JSON.stringify(value);
  return `\`${json.length <= 60 ? json : `${json.slice(0, 57)}…`}\``;
}

const within = (where, name) => (where === "" ? `\`${name}\`` : `${where}.${name}`);

/**
 * Gives the value with defaults filled in, or throws `InvalidInput`. Of a schema that was not made of shapes, only the
 * keywords that shapes use are looked at.
 */
export function check(schema, value, where = "") {
  const place = where === "" ? "the input" : where;
  if (schema.enum !== undefined && !schema.enum.some((one) => one === value)) {
    throw new InvalidInput(`${place} must be one of ${schema.enum.map(shown).join(", ")}, but is ${shown(value)}`);
  }
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => WORDS[type]?.[1](value) ?? true)) {
    const words = types.map((type) => WORDS[type][0]).join(" or ");
    throw new InvalidInput(`${place} must be ${words}, but is ${shown(value)}`);
  }
  if (schema.anyOf !== undefined) return checkAny(schema.anyOf, value, where);
  if (Array.isArray(value) && schema.items !== undefined) {
    return value.map((item, index) => check(schema.items, item, `${place}[${index}]`));
  }
  return WORDS.object[1](value) ? checkObject(schema, value, where) : value;
}

function checkAny(schemas, value, where) {
  const problems = [];
  for (const schema of schemas) {
    try {
      return check(schema, value, where);
    } catch (problem) {
      if (!(problem instanceof InvalidInput)) throw problem;
      if (schema.type !== "null") problems.push(problem.message);
    }
  }
  throw new InvalidInput(problems.join("; or "));
}

function checkObject(schema, value, where) {
  const properties = schema.properties ?? {};
  const checked = {};
  // Own keys only: `__proto__` from a JSON text is data and must stay it.
  const put = (name, found) =>
    Object.defineProperty(checked, name, { value: found, enumerable: true, writable: true, configurable: true });
  for (const [name, one] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) {
      const left_out = one === null && !(schema.required ?? []).includes(name) && !allowsNull(properties[name]);
      if (!left_out) put(name, check(properties[name], one, within(where, name)));
    } else if (schema.additionalProperties === false) {
      const names = Object.keys(properties).sort().map((known) => `\`${known}\``).join(", ");
      throw new InvalidInput(`${where === "" ? "" : `${where}: `}\`${name}\` is not known; there are: ${names || "none"}`);
    } else {
      const further = typeof schema.additionalProperties === "object" ? schema.additionalProperties : {};
      put(name, check(further, one, within(where, name)));
    }
  }
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(checked, name)) throw new InvalidInput(`${within(where, name)} is missing`);
  }
  for (const [name, property] of Object.entries(properties)) {
    if (!Object.hasOwn(checked, name) && property.default !== undefined) put(name, structuredClone(property.default));
  }
  return checked;
}

// Models write `null` for what they leave out.
function allowsNull(schema) {
  if (schema.anyOf !== undefined) return schema.anyOf.some(allowsNull);
  return schema.type === undefined ? schema.enum === undefined : [schema.type].flat().includes("null");
}
