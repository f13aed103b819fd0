declare const VALUE: unique symbol;
declare const LEFT_OUT: unique symbol;

/** A shape of values: a JSON schema that knows its type. */
export interface Shape<T> {
  readonly schema: object;
  readonly [VALUE]?: T;
}
/** A field that may be missing. */
export interface OptionalShape<T> extends Shape<T> {
  readonly [LEFT_OUT]: true;
}
export type Fields = Record<string, Shape<any>>;
/** The type of the values of a shape. */
export type ValueOf<S> = S extends Shape<infer T> ? T : never;
/** The type of an object with these fields. */
export type Values<F> = {
  [K in keyof F as F[K] extends OptionalShape<any> ? never : K]: ValueOf<F[K]>;
} & {
  [K in keyof F as F[K] extends OptionalShape<any> ? K : never]?: ValueOf<F[K]>;
};
/** A JSON schema written by hand; what it promises is not checked beyond what shapes check. */
export interface JsonSchema {
  type: string;
  [keyword: string]: unknown;
}
/** The type of the objects that fields or a JSON schema describe. */
export type Described<F> = F extends JsonSchema ? any : F extends Fields ? Values<F> : any;

/** A text. */
export function text(description?: string): Shape<string>;
/** A number. */
export function number(description?: string): Shape<number>;
/** A whole number. */
export function integer(description?: string): Shape<number>;
/** True or false. */
export function boolean(description?: string): Shape<boolean>;
/** Any JSON value. */
export function any(description?: string): Shape<any>;
/** One of these values. */
export function choice<const T extends string | number | boolean>(values: readonly T[], description?: string): Shape<T>;
/** A list of such items. */
export function list<T>(item: Shape<T>, description?: string): Shape<T[]>;
/** An object with any keys and such values. */
export function map<T>(value: Shape<T>, description?: string): Shape<Record<string, T>>;
/** An object with these fields and no others. */
export function object<const F extends Fields>(fields: F, description?: string): Shape<Values<F>>;
/** Such a value or null. */
export function nullable<T>(value: Shape<T>): Shape<T | null>;
/** A field that may be left out. */
export function optional<T>(value: Shape<T>): OptionalShape<T>;
/** A field that may be left out; `otherwise` then takes its place. */
export function optional<T>(value: Shape<T>, otherwise: NoInfer<T>): Shape<T>;

/** Something did not work. Thrown as it is, it reaches the host as `other`; `facts` are shown beside the message. */
export class PluginError extends Error {
  constructor(message: string, facts?: Record<string, string>);
  readonly facts: Record<string, string>;
  readonly kind: "other" | "invalid-input" | "denied" | "unavailable";
}
/** The caller gave something that cannot be used; the same call will fail again. */
export class InvalidInput extends PluginError {}
/** A capability was not granted; the message names it. */
export class Denied extends PluginError {}
/** Something outside is not to be had at the moment; a later call may work. */
export class Unavailable extends PluginError {}

type Maybe<T> = T | Promise<T>;

export interface Tool<A> {
  readonly description: string;
  readonly schema: object;
  readonly returns: object | undefined;
  readonly readOnly: boolean;
  readonly run: (args: A) => unknown;
}
/** A tool. Arguments are checked before `run` is called; what it returns, or resolves to, is any JSON value. */
export function tool<const F extends Fields | JsonSchema = {}>(declaration: {
  description: string;
  parameters?: F;
  /** The form of what it returns, where that is always the same: fields of an object, a shape or a JSON schema. */
  returns?: Fields | Shape<any> | JsonSchema;
  /** Whether a call changes nothing anywhere. */
  readOnly?: boolean;
  run(args: Described<F>): unknown;
}): Tool<Described<F>>;

/** What running a node gave. */
export class Outcome<T = Record<string, unknown>> {
  constructor(outputs: T, branch?: string, metadata?: Record<string, string>);
  readonly outputs: T;
  readonly branch: string | undefined;
  readonly metadata: Record<string, string>;
}
/** What running a node gave, with the branch to leave by where the node type declares branches. */
export function outcome<T>(outputs: T, branch?: string, metadata?: Record<string, string>): Outcome<T>;
export interface NodeType<F, I> {
  readonly description: string;
  readonly run: (fields: F, inputs: I) => unknown;
}
/** A node type. `fields` is what the graph's author writes on the node, `inputs` what flows in. */
export function node<const F extends Fields | JsonSchema = {}, const I extends Fields | JsonSchema = JsonSchema>(declaration: {
  description: string;
  fields?: F;
  inputs?: I;
  outputs?: Fields | JsonSchema;
  branches?: readonly string[];
  run(fields: Described<F>, inputs: Described<I>): Maybe<Outcome<any> | Record<string, unknown>>;
}): NodeType<Described<F>, Described<I>>;

export type Point =
  | `${"before" | "after"}-${"run" | "node" | "model-call" | "tool-call" | "agent-call" | "question" | "skill-load" | "skill-unload"}`
  | "node-failed";
export interface Verdict {
  readonly verdict: "proceed" | "change" | "refuse";
}
export interface Hook {
  readonly description: string;
  readonly run: (event: any) => Maybe<Verdict | void>;
}
/** A hook. Without a verdict the event goes on as it is. */
export function hook(declaration: { description: string; run(event: any): Maybe<Verdict | void> }): Hook;
/** The event goes on as it is. */
export function proceed(): Verdict;
/** The event goes on with this object in its place. */
export function change(event: object): Verdict;
/** The event does not go on, for this reason. */
export function refuse(reason: string): Verdict;

export interface Request<C> {
  /** What the graph hands over. */
  input: Record<string, any>;
  /** How the author of the graph set the connector up. */
  config: C;
  /** In callback mode: where the answer is expected, and the text that has to come with it. */
  callback?: { url: string; session: string };
  metadata: Record<string, string>;
}
export interface Connector<C> {
  readonly description: string;
  readonly send: (request: Request<C>) => unknown;
  readonly receive: (request: Request<C>, body: any) => unknown;
}
/** A connector. Without `receive`, what comes by the callback is the answer. */
export function connect<const C extends Fields | JsonSchema = JsonSchema>(declaration: {
  description: string;
  modes?: readonly ("sync" | "callback")[];
  config?: C;
  send(request: Request<Described<C>>): unknown;
  receive?(request: Request<Described<C>>, body: any): unknown;
}): Connector<Described<C>>;
/** From `send`: the request was taken, and the answer comes by the callback. */
export function accepted(): symbol;
