// The built-in modules and `require`. What is not listed here does not exist: an exception says so.
(function (host, internals) {
  "use strict";

  const { coded, inspect, format, path, fs, web } = internals;

  class EventEmitter {
    #listeners = new Map();
    on(name, listener) {
      if (!this.#listeners.has(name)) this.#listeners.set(name, []);
      this.#listeners.get(name).push(listener);
      return this;
    }
    once(name, listener) {
      const wrapped = (...values) => { this.off(name, wrapped); listener.apply(this, values); };
      wrapped.listener = listener;
      return this.on(name, wrapped);
    }
    off(name, listener) {
      const known = this.#listeners.get(name) ?? [];
      const index = known.findLastIndex((one) => one === listener || one.listener === listener);
      if (index >= 0) this.#listeners.set(name, known.toSpliced(index, 1));
      return this;
    }
    emit(name, ...values) {
      const known = this.#listeners.get(name) ?? [];
      if (name === "error" && known.length === 0) throw values[0] instanceof Error ? values[0] : new Error(`Unhandled error. (${inspect(values[0])})`);
      for (const listener of [...known]) listener.apply(this, values);
      return known.length > 0;
    }
    prependListener(name, listener) { this.#listeners.set(name, [listener, ...(this.#listeners.get(name) ?? [])]); return this; }
    removeAllListeners(name) { name === undefined ? this.#listeners.clear() : this.#listeners.delete(name); return this; }
    listeners(name) { return (this.#listeners.get(name) ?? []).map((one) => one.listener ?? one); }
    listenerCount(name) { return (this.#listeners.get(name) ?? []).length; }
    eventNames() { return [...this.#listeners.keys()]; }
    setMaxListeners() { return this; }
    addListener(name, listener) { return this.on(name, listener); }
    removeListener(name, listener) { return this.off(name, listener); }
    static once(emitter, name) {
      return new Promise((resolve, reject) => {
        emitter.once(name, (...values) => resolve(values));
        if (name !== "error") emitter.once("error", reject);
      });
    }
  }
  EventEmitter.EventEmitter = EventEmitter;

  function equal(a, b, strict, seen) {
    if (strict ? Object.is(a, b) : a == b || (a !== a && b !== b)) return true;
    if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
    if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (Array.isArray(a) !== Array.isArray(b)) return false;
    if (seen.get(a) === b) return true;
    seen.set(a, b);
    if (a instanceof Date && b instanceof Date && a.getTime() !== b.getTime()) return false;
    if (a instanceof RegExp && String(a) !== String(b)) return false;
    if (a instanceof Error && (a.message !== b.message || a.name !== b.name)) return false;
    if (a instanceof Map || a instanceof Set) {
      if (a.size !== b.size) return false;
      const rest = [...b];
      for (const item of a) {
        const at = rest.findIndex((other) => equal(item, other, strict, seen));
        if (at < 0) return false;
        rest.splice(at, 1);
      }
    }
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key], strict, seen));
  }
  const isDeepStrictEqual = (a, b) => equal(a, b, true, new Map());

  class AssertionError extends Error {
    constructor({ message, actual, expected, operator }) {
      super(message);
      this.name = "AssertionError";
      this.code = "ERR_ASSERTION";
      this.generatedMessage = false;
      this.actual = actual;
      this.expected = expected;
      this.operator = operator;
    }
  }
  function fails(message, otherwise, actual, expected, operator) {
    if (message instanceof Error) throw message;
    throw new AssertionError({ message: message ?? otherwise, actual, expected, operator });
  }
  function matches(error, wanted) {
    if (wanted === undefined) return true;
    if (wanted instanceof RegExp) return wanted.test(String(error));
    if (typeof wanted === "function") return wanted.prototype !== undefined && error instanceof wanted ? true : Error.isPrototypeOf(wanted) ? false : wanted.call({}, error) === true;
    return Object.keys(wanted).every((key) => wanted[key] instanceof RegExp ? wanted[key].test(String(error[key])) : isDeepStrictEqual(error[key], wanted[key]));
  }
  const assert = (value, message) => { if (!value) fails(message, "The expression evaluated to a falsy value", value, true, "=="); };
  Object.assign(assert, {
    ok: (value, message) => assert(value, message),
    equal: (a, b, message) => { if (!(a == b || (a !== a && b !== b))) fails(message, `${inspect(a)} == ${inspect(b)}`, a, b, "=="); },
    notEqual: (a, b, message) => { if (a == b) fails(message, `${inspect(a)} != ${inspect(b)}`, a, b, "!="); },
    strictEqual: (a, b, message) => { if (!Object.is(a, b)) fails(message, `Expected values to be strictly equal:\n\n${inspect(a)} !== ${inspect(b)}\n`, a, b, "strictEqual"); },
    notStrictEqual: (a, b, message) => { if (Object.is(a, b)) fails(message, `Expected "actual" to be strictly unequal to: ${inspect(b)}`, a, b, "notStrictEqual"); },
    deepEqual: (a, b, message) => { if (!equal(a, b, false, new Map())) fails(message, `Expected values to be loosely deep-equal:\n\n${inspect(a)}\n\nshould loosely deep-equal\n\n${inspect(b)}`, a, b, "deepEqual"); },
    deepStrictEqual: (a, b, message) => { if (!isDeepStrictEqual(a, b)) fails(message, `Expected values to be strictly deep-equal:\n${inspect(a)}\n\nshould equal\n\n${inspect(b)}`, a, b, "deepStrictEqual"); },
    notDeepStrictEqual: (a, b, message) => { if (isDeepStrictEqual(a, b)) fails(message, `Expected "actual" not to be strictly deep-equal to: ${inspect(b)}`, a, b, "notDeepStrictEqual"); },
    match: (text, pattern, message) => { if (!pattern.test(text)) fails(message, `The input did not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`, text, pattern, "match"); },
    doesNotMatch: (text, pattern, message) => { if (pattern.test(text)) fails(message, `The input was expected to not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`, text, pattern, "doesNotMatch"); },
    fail: (message) => fails(message, "Failed", undefined, undefined, "fail"),
    ifError: (value) => { if (value !== null && value !== undefined) fails(undefined, `ifError got unwanted exception: ${value.message ?? inspect(value)}`, value, null, "ifError"); },
    throws: (run, wanted, message) => {
      try { run(); } catch (error) { if (matches(error, wanted)) return; throw error; }
      fails(typeof wanted === "string" ? wanted : message, "Missing expected exception.", undefined, wanted, "throws");
    },
    doesNotThrow: (run) => { run(); },
    rejects: async (promise, wanted, message) => {
      try { await (typeof promise === "function" ? promise() : promise); } catch (error) { if (matches(error, wanted)) return; throw error; }
      fails(message, "Missing expected rejection.", undefined, wanted, "rejects");
    },
    AssertionError,
  });
  assert.strict = assert;

  const types = {
    isDate: (value) => value instanceof Date,
    isRegExp: (value) => value instanceof RegExp,
    isMap: (value) => value instanceof Map,
    isSet: (value) => value instanceof Set,
    isPromise: (value) => value instanceof Promise,
    isNativeError: (value) => value instanceof Error,
    isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
    isUint8Array: (value) => value instanceof Uint8Array,
    isArrayBuffer: (value) => value instanceof ArrayBuffer,
    isAsyncFunction: (value) => typeof value === "function" && value.constructor.name === "AsyncFunction",
  };
  const promisify = (run) => run[promisify.custom] ?? function (...values) {
    return new Promise((resolve, reject) => run.call(this, ...values, (error, result) => error ? reject(error) : resolve(result)));
  };
  promisify.custom = Symbol.for("nodejs.util.promisify.custom");
  const util = {
    inspect, format, promisify, types, isDeepStrictEqual,
    formatWithOptions: (options, ...values) => format(...values),
    callbackify: (run) => (...values) => { const callback = values.pop(); run(...values).then((result) => callback(null, result), (error) => callback(error)); },
    inherits: (child, parent) => { Object.defineProperty(child, "super_", { value: parent }); Object.setPrototypeOf(child.prototype, parent.prototype); },
    deprecate: (run) => run,
    debuglog: () => () => {},
    isArray: Array.isArray,
    stripVTControlCharacters: (text) => text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, ""),
    TextEncoder: web.TextEncoder,
    TextDecoder: web.TextDecoder,
  };

  const sleep = (delay, value) => new Promise((resolve) => internals.timers.setTimeout(() => resolve(value), delay));
  internals.timers.setTimeout[promisify.custom] = sleep;
  const timersPromises = {
    setTimeout: sleep,
    setImmediate: (value) => new Promise((resolve) => internals.timers.setImmediate(() => resolve(value))),
    async *setInterval(delay, value) { while (true) yield await sleep(delay, value); },
    scheduler: { wait: sleep, yield: () => sleep(0) },
  };

  const os = {
    EOL: "\n",
    platform: () => "linux",
    type: () => "Linux",
    release: () => "0.0.0",
    arch: () => "wasm32",
    machine: () => "wasm32",
    endianness: () => "LE",
    hostname: () => "cell",
    homedir: () => "/",
    tmpdir: () => "/tmp",
    cpus: () => [],
    availableParallelism: () => 1,
    totalmem: () => host.memoryBytes(),
    freemem: () => 0,
    uptime: () => internals.process.uptime(),
    loadavg: () => [0, 0, 0],
    networkInterfaces: () => ({}),
    userInfo: () => ({ uid: 0, gid: 0, username: "cell", homedir: "/", shell: null }),
    constants: { signals: {}, errno: {} },
  };

  class Hash {
    #algorithm;
    #key;
    #parts = [];
    constructor(algorithm, key) {
      this.#algorithm = String(algorithm).toLowerCase().replace(/^sha-/, "sha");
      this.#key = key;
      if (!crypto.getHashes().includes(this.#algorithm)) throw coded(Error, "ERR_OSSL_EVP_UNSUPPORTED", "Digest method not supported");
    }
    update(data, encoding) {
      this.#parts.push(typeof data === "string" ? internals.Buffer.from(data, encoding) : internals.bytesOf(data));
      return this;
    }
    digest(encoding) {
      const answer = new internals.Buffer(host.digest(this.#algorithm, internals.Buffer.concat(this.#parts), this.#key));
      return encoding === undefined || encoding === "buffer" ? answer : answer.toString(encoding);
    }
  }
  const crypto = {
    getHashes: () => ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"],
    createHash: (algorithm) => new Hash(algorithm),
    createHmac: (algorithm, key) => new Hash(algorithm, typeof key === "string" ? internals.Buffer.from(key) : internals.bytesOf(key)),
    hash: (algorithm, data, encoding = "hex") => new Hash(algorithm).update(data).digest(encoding),
    randomBytes: (size) => new internals.Buffer(host.randomBytes(size)),
    randomUUID: web.crypto.randomUUID,
    getRandomValues: web.crypto.getRandomValues,
    randomInt: (low, high) => {
      const [from, to] = high === undefined ? [0, low] : [low, high];
      const bytes = new DataView(host.randomBytes(8));
      return from + Number(bytes.getBigUint64(0) % BigInt(to - from));
    },
    timingSafeEqual: (a, b) => {
      if (a.length !== b.length) throw coded(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
      return a.reduce((difference, byte, index) => difference | (byte ^ b[index]), 0) === 0;
    },
    webcrypto: web.crypto,
  };

  const querystring = {
    parse: (text) => {
      const out = Object.create(null);
      for (const [name, value] of new web.URLSearchParams(text)) out[name] = name in out ? [].concat(out[name], value) : value;
      return out;
    },
    stringify: (object) => Object.entries(object).flatMap(([name, value]) => [].concat(value).map((one) => `${encodeURIComponent(name)}=${encodeURIComponent(one)}`)).join("&"),
    escape: encodeURIComponent,
    unescape: decodeURIComponent,
  };
  const url = {
    URL: web.URL,
    URLSearchParams: web.URLSearchParams,
    fileURLToPath: (value) => decodeURIComponent(new web.URL(String(value)).pathname),
    pathToFileURL: (value) => new web.URL(`file://${path.resolve(value).split("/").map(encodeURIComponent).join("/")}`),
    format: (value) => String(value),
  };
  class StringDecoder {
    #encoding;
    #rest = new Uint8Array(0);
    constructor(encoding = "utf8") { this.#encoding = internals.encodingOf(encoding); }
    write(chunk) {
      const bytes = internals.Buffer.concat([this.#rest, chunk]);
      let end = bytes.length;
      if (this.#encoding === "utf8") {
        let start = end - 1;
        while (start >= 0 && end - start < 4 && (bytes[start] & 0xc0) === 0x80) start -= 1;
        const lead = start < 0 ? 0 : bytes[start];
        const needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
        if (start >= 0 && end - start < needed) end = start;
      }
      this.#rest = bytes.slice(end);
      return bytes.toString(this.#encoding, 0, end);
    }
    end(chunk) {
      const out = (chunk === undefined ? "" : this.write(chunk)) + host.decode(this.#rest, this.#encoding);
      this.#rest = new Uint8Array(0);
      return out;
    }
  }

  const builtins = {
    assert, "assert/strict": assert, buffer: { Buffer: internals.Buffer, atob: web.atob, btoa: web.btoa }, console: internals.console, crypto, events: EventEmitter,
    fs, "fs/promises": fs.promises, os, path, "path/posix": path, perf_hooks: { performance: web.performance }, process: internals.process, querystring,
    string_decoder: { StringDecoder }, timers: internals.timers, "timers/promises": timersPromises, url, util, "util/types": types,
  };
  Object.assign(web.crypto, { subtle: undefined });
  builtins.module = { createRequire: (from) => requireFrom(path.dirname(from.startsWith("file:") ? url.fileURLToPath(from) : from)), builtinModules: Object.keys(builtins), isBuiltin: (name) => builtin(name) !== undefined };

  function builtin(name) {
    const plain = name.startsWith("node:") ? name.slice(5) : name;
    return Object.hasOwn(builtins, plain) ? builtins[plain] : undefined;
  }
  internals.builtin = builtin;

  function missing(name) {
    const known = Object.keys(builtins).join(", ");
    if (/^(node:)?https?$/.test(name)) return coded(Error, "MODULE_NOT_FOUND", `Cannot find module '${name}': a script asks servers with \`fetch\``);
    const reason = name.startsWith(".") || name.startsWith("/") ? "no such file is visible to this cell" : `a script cell has no packages, and of the built-in modules only ${known}`;
    return coded(Error, "MODULE_NOT_FOUND", `Cannot find module '${name}': ${reason}`);
  }
  internals.missing = missing;

  // Finds the file of a relative or absolute specifier; the same candidates as Node, without packages.
  internals.locate = (directory, name) => {
    const base = path.resolve(directory, name);
    for (const candidate of [base, `${base}.js`, `${base}.json`, `${base}.ts`, `${base}.mjs`, `${base}.cjs`, `${base}/index.js`]) {
      const found = host.stat(candidate, true);
      if (found.error === undefined && found.kind === "file") return candidate;
    }
    throw missing(name);
  };

  const loaded = new Map();
  function requireFrom(directory) {
    const require = (name) => {
      if (typeof name !== "string") throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "id" argument must be of type string. Received ${inspect(name)}`);
      const known = builtin(name);
      if (known !== undefined) return known;
      if (!/^\.{0,2}\//.test(name)) throw missing(name);
      const file = internals.locate(directory, name);
      if (loaded.has(file)) return loaded.get(file).exports;
      const module = { exports: {}, id: file, filename: file, loaded: false, children: [], paths: [] };
      loaded.set(file, module);
      const source = fs.readFileSync(file, "utf8");
      if (file.endsWith(".json")) module.exports = JSON.parse(source);
      else internals.runCommon(host.compile(file, source), module, file);
      module.loaded = true;
      return module.exports;
    };
    require.resolve = (name) => builtin(name) !== undefined ? name : internals.locate(directory, name);
    require.cache = Object.create(null);
    return require;
  }
  internals.requireFrom = requireFrom;

  // Calls the function a CommonJS source was compiled to. `file` is its absolute path.
  internals.runCommon = (run, module, file, directory = path.dirname(file)) => {
    const require = requireFrom(directory);
    require.main = internals.main;
    run.call(module.exports, module.exports, require, module, file, directory);
  };
  internals.runMain = (run, file, directory) => {
    internals.main = { exports: {}, id: ".", filename: file, loaded: false, children: [], paths: [] };
    internals.runCommon(run, internals.main, file, directory);
  };
  // Modules in ECMAScript syntax find `require` too: many scripts mix both.
  internals.prepareModule = (file, directory) => {
    for (const [name, value] of [["require", requireFrom(directory)], ["__filename", file], ["__dirname", directory]]) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    }
  };
});
