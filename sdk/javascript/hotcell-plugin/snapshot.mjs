// Runs the engine of JavaScript up to the point where the plugin's module is evaluated, and makes a module whose memory begins
// there. It stands in for the program `wizer`, which `componentize-js` would run: what that program gives depends on the clock,
// on random numbers and on the paths of folders. Here the engine sees a fixed clock, random numbers that follow from the code,
// and paths that are the same everywhere, so that the same code gives the same component.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What the engine calls the folder with the bindings, and the folder of the project. */
const [BINDINGS, PROJECT] = ["/.hotcell", "/project/"];
/** The time at which the engine starts, in nanoseconds: the beginning of 2000. */
const START = 946_684_800_000_000_000n;
const PAGE = 65_536;
/** Memory is written as segments; engines take a hundred thousand of them, other tools less. */
const MOST_SEGMENTS = 10_000;

const [SUCCESS, BAD_DESCRIPTOR, NOT_FOUND, NOT_SUPPORTED, READ_ONLY] = [0, 8, 44, 58, 69];
const [DEVICE, DIRECTORY, FILE] = [2, 3, 4];
const [SECTION_IMPORT, SECTION_MEMORY, SECTION_GLOBAL, SECTION_EXPORT, SECTION_START, SECTION_DATA, SECTION_DATA_COUNT] =
  [2, 5, 6, 7, 8, 11, 12];
const [I32, I64, F32, F64] = [0x7f, 0x7e, 0x7d, 0x7c];
const EXPORTED_GLOBAL = 3;

/** The engine ended by itself. */
class Exit extends Error {
  constructor(status) {
    super(`exited with status ${status}`);
    this.status = status;
  }
}

/** The code of a plugin asks for what is there in calls alone. */
class TooEarly extends Error {}

/** Numbers of a module, from a place on. */
class Reader {
  constructor(bytes, at = 0) {
    Object.assign(this, { bytes, at });
  }

  get isAtEnd() {
    return this.at >= this.bytes.length;
  }

  byte() {
    return this.bytes[this.at++];
  }

  take(length) {
    return this.bytes.subarray(this.at, (this.at += length));
  }

  /** An unsigned number of up to 32 bits. */
  number() {
    let [value, shift, byte] = [0, 0, 0];
    do {
      byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      shift += 7;
    } while (byte & 0x80);
    return value;
  }

  skipNumber() {
    while (this.byte() & 0x80);
  }

  name() {
    return Buffer.from(this.take(this.number())).toString();
  }

  /** A constant expression. */
  skipExpression() {
    for (;;) {
      const opcode = this.byte();
      if (opcode === 0x0b) return;
      if ([0x41, 0x42, 0x23, 0xd2].includes(opcode)) this.skipNumber();
      else if (opcode === 0x43) this.take(4);
      else if (opcode === 0x44) this.take(8);
      else if (opcode === 0xd0) this.take(1);
      else if (![0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e].includes(opcode)) {
        throw new Error(`the engine has a constant with the unknown instruction ${opcode}`);
      }
    }
  }
}

function unsigned(value) {
  const bytes = [];
  do {
    const rest = Math.floor(value / 128);
    bytes.push((value % 128) | (rest ? 0x80 : 0));
    value = rest;
  } while (value);
  return Buffer.from(bytes);
}

function signed(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; ) {
    const byte = Number(rest & 0x7fn);
    rest >>= 7n;
    const isDone = (rest === 0n && !(byte & 0x40)) || (rest === -1n && Boolean(byte & 0x40));
    bytes.push(byte | (isDone ? 0 : 0x80));
    if (isDone) return Buffer.from(bytes);
  }
}

function section(id, contents) {
  return Buffer.concat([Buffer.from([id]), unsigned(contents.length), contents]);
}

function vector(items) {
  return Buffer.concat([unsigned(items.length), ...items]);
}

/** The sections of a module in their order: `{ id, contents }`. */
function sectionsOf(bytes) {
  const reader = new Reader(bytes, 8);
  const sections = [];
  while (!reader.isAtEnd) {
    const id = reader.byte();
    sections.push({ id, contents: reader.take(reader.number()) });
  }
  return sections;
}

function moduleOf(header, sections) {
  return Buffer.concat([header, ...sections.map(({ id, contents }) => section(id, contents))]);
}

/** The globals of a module: their types, whether they change, and the bytes of each. */
function globalsOf(contents) {
  const reader = new Reader(contents);
  return Array.from({ length: reader.number() }, () => {
    const start = reader.at;
    const [type, changes] = [reader.byte(), reader.byte() === 1];
    reader.skipExpression();
    return { type, changes, bytes: contents.subarray(start, reader.at) };
  });
}

/** The exports of a module: their names, and the bytes of each. */
function exportsOf(contents) {
  const reader = new Reader(contents);
  return Array.from({ length: reader.number() }, () => {
    const start = reader.at;
    const name = reader.name();
    reader.byte();
    reader.skipNumber();
    return { name, bytes: contents.subarray(start, reader.at) };
  });
}

function importsMoreThanFunctions(contents) {
  const reader = new Reader(contents);
  for (let left = reader.number(); left > 0; left--) {
    reader.name();
    reader.name();
    if (reader.byte() !== 0) return true;
    reader.skipNumber();
  }
  return false;
}

const globalName = (index) => `hotcell:global ${index}`;

/** The module with all globals that change among its exports, so that they can be read. */
function readable(header, sections) {
  const { contents } = sections.find(({ id }) => id === SECTION_GLOBAL) ?? { contents: [0] };
  const added = globalsOf(contents).flatMap(({ changes }, index) => {
    const name = Buffer.from(globalName(index));
    return changes ? [Buffer.concat([unsigned(name.length), name, Buffer.from([EXPORTED_GLOBAL]), unsigned(index)])] : [];
  });
  const exporting = ({ id, contents }) =>
    id === SECTION_EXPORT
      ? { id, contents: vector([...exportsOf(contents).map(({ bytes }) => bytes), ...added]) }
      : { id, contents };
  return moduleOf(header, sections.map(exporting));
}

/** A global that begins with its present value. */
function globalWith({ type, changes, bytes }, value) {
  if (!changes) return bytes;
  const constant = Buffer.alloc(9);
  let instruction;
  if (type === I32) instruction = Buffer.concat([Buffer.from([0x41]), signed(value)]);
  else if (type === I64) instruction = Buffer.concat([Buffer.from([0x42]), signed(value)]);
  else if (type === F32) {
    constant[0] = 0x43;
    constant.writeFloatLE(value, 1);
    instruction = constant.subarray(0, 5);
  } else if (type === F64) {
    constant[0] = 0x44;
    constant.writeDoubleLE(value, 1);
    instruction = constant;
  } else throw new Error(`the engine has a global of the unknown type ${type}`);
  return Buffer.concat([Buffer.from([type, 1]), instruction, Buffer.from([0x0b])]);
}

/** The parts of a memory that are not zero, as `[start, end]`; zeros of less than `gap` bytes belong to them. */
function parts(memory, gap) {
  const words = new BigUint64Array(memory.buffer, memory.byteOffset, memory.length / 8);
  const found = [];
  for (let index = 0; index < words.length; index++) {
    if (words[index] === 0n) continue;
    const [start, last] = [index * 8, found.at(-1)];
    if (last !== undefined && start - last[1] < gap) last[1] = start + 8;
    else found.push([start, start + 8]);
  }
  return found;
}

function segments(memory) {
  let gap = 32;
  let found = parts(memory, gap);
  while (found.length > MOST_SEGMENTS) found = parts(memory, (gap *= 2));
  return found.map(([start, end]) => {
    const offset = Buffer.concat([Buffer.from([0, 0x41]), signed(start | 0), Buffer.from([0x0b])]);
    return Buffer.concat([offset, unsigned(end - start), memory.subarray(start, end)]);
  });
}

/** Segments that have been copied into memory are empty now, and the others stay: code may name them by their number. */
function usedSegments(contents) {
  const reader = new Reader(contents);
  return Array.from({ length: reader.number() }, () => {
    const kind = reader.number();
    if (kind === 2) reader.skipNumber();
    if (kind !== 1) reader.skipExpression();
    const data = reader.take(reader.number());
    return kind === 1 ? Buffer.concat([Buffer.from([1]), unsigned(data.length), data]) : Buffer.from([1, 0]);
  });
}

/** The module as it is now: it begins with the memory and the globals of the instance. */
function begun(header, sections, exports, started) {
  const memory = new Uint8Array(exports.memory.buffer);
  const now = segments(memory);
  const numbersSegments = sections.some(({ id }) => id === SECTION_DATA_COUNT);
  const data = sections.find(({ id }) => id === SECTION_DATA)?.contents ?? Buffer.from([0]);
  const all = [...(numbersSegments ? usedSegments(data) : []), ...now];
  const changed = sections.flatMap(({ id, contents }) => {
    if (id === SECTION_START || id === SECTION_DATA) return [];
    if (id === SECTION_DATA_COUNT) return [{ id, contents: unsigned(all.length) }];
    if (id === SECTION_MEMORY) {
      const reader = new Reader(contents);
      if (reader.number() !== 1) throw new Error("the engine has several memories");
      const flags = reader.byte();
      reader.skipNumber();
      const pages = unsigned(memory.length / PAGE);
      return [{ id, contents: Buffer.concat([Buffer.from([1, flags]), pages, contents.subarray(reader.at)]) }];
    }
    if (id === SECTION_GLOBAL) {
      const globals = globalsOf(contents).map((global, index) => globalWith(global, exports[globalName(index)]?.value));
      return [{ id, contents: vector(globals) }];
    }
    if (id === SECTION_EXPORT) {
      const kept = exportsOf(contents).filter(({ name }) => !started.includes(name));
      return [{ id, contents: vector(kept.map(({ bytes }) => bytes)) }];
    }
    return [{ id, contents }];
  });
  // Data comes after code; custom sections may come anywhere, and names last.
  const code = changed.findLastIndex(({ id }) => id !== 0);
  changed.splice(code + 1, 0, { id: SECTION_DATA, contents: vector(all) });
  return moduleOf(header, changed);
}

/** A system of which the engine learns nothing but files, and nothing that differs from one build to the next. */
class System {
  constructor({ input, variables, read }) {
    const texts = Object.entries(variables).map(([name, value]) => Buffer.from(`${name}=${value}\0`));
    const stdin = { kind: DEVICE, data: Buffer.from(input), at: 0 };
    this.open = [stdin, { kind: DEVICE }, { kind: DEVICE }, { kind: DIRECTORY }];
    this.seed = createHash("sha256").update(input);
    Object.assign(this, { variables: texts.sort(Buffer.compare), read, said: [[], []], ticks: 0n, draws: 0 });
  }

  get view() {
    return new DataView(this.memory.buffer);
  }

  bytes(at, length) {
    return Buffer.from(this.memory.buffer, at >>> 0, length >>> 0);
  }

  buffers(list, count) {
    const view = this.view;
    const at = (index) => (list >>> 0) + index * 8;
    return Array.from({ length: count }, (_, index) =>
      this.bytes(view.getUint32(at(index), true), view.getUint32(at(index) + 4, true)),
    );
  }

  file(at, length) {
    const path = this.bytes(at, length).toString();
    const data = this.read(path);
    if (data !== undefined) this.seed.update(data);
    return data;
  }

  /** Random numbers follow from what the engine has read so far. */
  random(bytes) {
    for (let at = 0; at < bytes.length; at += 32) {
      const block = this.seed.copy().update(String(this.draws++)).digest();
      block.copy(bytes, at);
    }
  }

  describe(at, { kind, data }) {
    const stat = this.bytes(at, 64).fill(0);
    stat[16] = kind;
    stat.writeBigUInt64LE(1n, 24);
    stat.writeBigUInt64LE(BigInt(data?.length ?? 0), 32);
    return SUCCESS;
  }

  functions() {
    const put = (at, value) => (this.view.setUint32(at >>> 0, value, true), SUCCESS);
    return {
      args_sizes_get: (count, size) => put(count, 0) + put(size, 0),
      args_get: () => SUCCESS,
      environ_sizes_get: (count, size) =>
        put(count, this.variables.length) + put(size, Buffer.concat(this.variables).length),
      environ_get: (pointers, texts) => {
        for (const text of this.variables) {
          put(pointers, texts);
          text.copy(this.bytes(texts, text.length));
          [pointers, texts] = [pointers + 4, texts + text.length];
        }
        return SUCCESS;
      },
      clock_time_get: (clock, precision, at) => {
        this.ticks += 1_000n;
        this.view.setBigUint64(at >>> 0, clock === 0 ? START + this.ticks : this.ticks, true);
        return SUCCESS;
      },
      random_get: (at, length) => (this.random(this.bytes(at, length)), SUCCESS),
      proc_exit: (status) => {
        throw new Exit(status);
      },
      fd_write: (descriptor, list, count, written) => {
        if (descriptor !== 1 && descriptor !== 2) return BAD_DESCRIPTOR;
        const data = Buffer.concat(this.buffers(list, count));
        this.said[descriptor - 1].push(data);
        return put(written, data.length);
      },
      fd_read: (descriptor, list, count, taken) => {
        const file = this.open[descriptor];
        if (file?.data === undefined) return BAD_DESCRIPTOR;
        const start = file.at;
        for (const buffer of this.buffers(list, count)) file.at += file.data.copy(buffer, 0, file.at);
        return put(taken, file.at - start);
      },
      fd_seek: (descriptor, offset, whence, at) => {
        const file = this.open[descriptor];
        if (file?.kind !== FILE) return BAD_DESCRIPTOR;
        file.at = [0, file.at, file.data.length][whence] + Number(offset);
        this.view.setBigUint64(at >>> 0, BigInt(file.at), true);
        return SUCCESS;
      },
      fd_close: (descriptor) => {
        if (this.open[descriptor] === undefined) return BAD_DESCRIPTOR;
        this.open[descriptor] = undefined;
        return SUCCESS;
      },
      fd_fdstat_get: (descriptor, at) => {
        const file = this.open[descriptor];
        if (file === undefined) return BAD_DESCRIPTOR;
        const stat = this.bytes(at, 24).fill(0);
        stat[0] = file.kind;
        stat.fill(0xff, 8);
        return SUCCESS;
      },
      fd_fdstat_set_flags: () => SUCCESS,
      fd_prestat_get: (descriptor, at) => {
        if (this.open[descriptor]?.kind !== DIRECTORY) return BAD_DESCRIPTOR;
        return put(at, 0) + put(at + 4, 1);
      },
      fd_prestat_dir_name: (descriptor, at) => (this.bytes(at, 1).write("/"), SUCCESS),
      fd_readdir: () => NOT_SUPPORTED,
      path_filestat_get: (descriptor, flags, path, length, at) => {
        const data = this.file(path, length);
        return data === undefined ? NOT_FOUND : this.describe(at, { kind: FILE, data });
      },
      path_open: (descriptor, lookup, path, length, open, rights, inherited, flags, at) => {
        const data = this.file(path, length);
        if (data === undefined) return NOT_FOUND;
        return put(at, this.open.push({ kind: FILE, data, at: 0 }) - 1);
      },
      path_remove_directory: () => READ_ONLY,
      path_unlink_file: () => READ_ONLY,
    };
  }
}

/** The arguments that `componentize-js` gives to the program. */
function ordered(given) {
  const after = (start) => given.find((argument) => argument.startsWith(start))?.slice(start.length);
  const order = {
    bindings: after("--dir="),
    project: after("--mapdir=/::"),
    output: after("-o="),
    start: given[given.indexOf("--init-func") + 1],
    input: given.at(-1),
  };
  if (Object.values(order).some((value) => value === undefined)) {
    throw new Error(`this version of componentize-js asks for a snapshot in another way: ${given.join(" ")}`);
  }
  return order;
}

function take(order, system) {
  const bytes = readFileSync(order.input);
  const [header, sections] = [bytes.subarray(0, 8), sectionsOf(bytes)];
  const imports = sections.find(({ id }) => id === SECTION_IMPORT);
  if (imports && importsMoreThanFunctions(imports.contents)) throw new Error("the engine imports more than functions");
  const module = new WebAssembly.Module(readable(header, sections));
  const ours = system.functions();
  const functions = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    const none = () => {
      throw new TooEarly(
        `the top of a module calls \`${name}\` of \`${from}\`, but it runs once while the plugin is built: call it inside \`run\``,
      );
    };
    (functions[from] ??= {})[name] = (from === "wasi_snapshot_preview1" && ours[name]) || none;
  }
  const { exports } = new WebAssembly.Instance(module, functions);
  system.memory = exports.memory;
  exports._initialize?.();
  exports[order.start]();
  return begun(header, sections, exports, [order.start, "_initialize"]);
}

/** Does what `spawnSync` would give for the program, given the same arguments. */
export function snapshot(given, { env, input }) {
  const order = ordered(given);
  const read = (path) => {
    const name = path.replace(/^\/+/, "");
    const inBindings = `/${name}`.startsWith(`${BINDINGS}/`);
    const file = inBindings ? join(order.bindings, `/${name}`.slice(BINDINGS.length)) : join(order.project, name);
    try {
      return readFileSync(file);
    } catch {
      return undefined;
    }
  };
  const named = input.replaceAll(order.bindings, BINDINGS).replaceAll(`${order.project}/`, PROJECT);
  const system = new System({ input: named, variables: env, read });
  const result = (status, said = "") => {
    const [stdout, stderr] = system.said.map((texts) => Buffer.concat(texts).toString());
    process.stdout.write(stdout);
    return { status, signal: null, stderr: `${stderr}${said}` };
  };
  try {
    writeFileSync(order.output, take(order, system));
    return result(0);
  } catch (error) {
    if (error instanceof Exit) return result(error.status);
    return result(1, error instanceof TooEarly ? error.message : (error.stack ?? String(error)));
  }
}
