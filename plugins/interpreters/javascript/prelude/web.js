// The globals that browsers and Node share: text encoding, base64, URL, structuredClone, crypto, performance, AbortController.
(function (host, internals) {
  "use strict";

  const { coded } = internals;

  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") { return new Uint8Array(host.encode(String(text), "utf8")); }
    encodeInto(text, target) {
      let read = 0;
      let written = 0;
      for (const character of String(text)) {
        const bytes = this.encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    #name;
    #fatal;
    #ignoreBOM;
    constructor(label = "utf-8", options = {}) {
      const known = { "utf-8": "utf8", utf8: "utf8", "utf-16le": "utf16le", "utf-16": "utf16le", latin1: "latin1", "iso-8859-1": "latin1", ascii: "latin1", "us-ascii": "latin1" };
      this.#name = known[String(label).toLowerCase()];
      if (this.#name === undefined) throw coded(RangeError, "ERR_ENCODING_NOT_SUPPORTED", `The "${label}" encoding is not supported`);
      this.#fatal = Boolean(options.fatal);
      this.#ignoreBOM = Boolean(options.ignoreBOM);
    }
    get encoding() { return this.#name === "utf8" ? "utf-8" : this.#name === "utf16le" ? "utf-16le" : "windows-1252"; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(input) {
      if (input === undefined) return "";
      const text = host.decode(bytesOf(input), this.#name, this.#fatal);
      return !this.#ignoreBOM && text.startsWith("\ufeff") ? text.slice(1) : text;
    }
  }

  function bytesOf(input) {
    if (input instanceof Uint8Array) return input;
    if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    return new Uint8Array(input);
  }
  internals.bytesOf = bytesOf;

  function btoa(text) {
    for (const character of String(text)) if (character.codePointAt(0) > 255) throw new DOMException("Invalid character", "InvalidCharacterError");
    return host.decode(new Uint8Array(host.encode(String(text), "latin1")), "base64");
  }
  function atob(text) {
    const cleaned = String(text).replace(/[\t\n\f\r ]/g, "");
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(cleaned) || cleaned.replace(/=+$/, "").length % 4 === 1) {
      throw new DOMException("The string to be decoded is not correctly encoded.", "InvalidCharacterError");
    }
    return host.decode(new Uint8Array(host.encode(cleaned, "base64")), "latin1");
  }

  class DOMException extends Error {
    #name;
    constructor(message = "", name = "Error") {
      super(message);
      this.#name = typeof name === "object" && name !== null ? name.name ?? "Error" : String(name);
    }
    get name() { return this.#name; }
    get code() { return { InvalidCharacterError: 5, DataCloneError: 25, AbortError: 20, TimeoutError: 23 }[this.#name] ?? 0; }
  }

  function structuredClone(value) { return clone(value, new Map()); }
  function clone(value, seen) {
    if (typeof value === "function" || typeof value === "symbol") {
      throw new DOMException(`${typeof value === "symbol" ? value.toString() : internals.inspect(value)} could not be cloned.`, "DataCloneError");
    }
    if (value === null || typeof value !== "object") return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => { seen.set(value, copy); return copy; };
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const Kind = value instanceof internals.Buffer ? Uint8Array : value.constructor;
      return keep(new Kind(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength)));
    }
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [key, item] of value) copy.set(clone(key, seen), clone(item, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const item of value) copy.add(clone(item, seen));
      return copy;
    }
    if (value instanceof Error) {
      const Kind = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError }[value.name] ?? Error;
      const copy = keep(new Kind(value.message));
      if ("cause" in value) copy.cause = clone(value.cause, seen);
      return copy;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) {
      throw new DOMException(`${internals.inspect(value)} could not be cloned.`, "DataCloneError");
    }
    if (value instanceof Boolean || value instanceof Number || value instanceof String) return keep(Object(value.valueOf()));
    const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) copy[key] = clone(value[key], seen);
    return copy;
  }

  function escapeForm(text) {
    return encodeURIComponent(text.toWellFormed()).replace(/%20/g, "+").replace(/[!'()~]/g, (character) => "%" + character.charCodeAt(0).toString(16).toUpperCase());
  }
  function unescapeForm(text) {
    const spaced = text.replaceAll("+", " ");
    if (!spaced.includes("%")) return spaced;
    const bytes = [];
    for (const part of spaced.split(/(%[0-9A-Fa-f]{2})/)) {
      if (/^%[0-9A-Fa-f]{2}$/.test(part)) bytes.push(parseInt(part.slice(1), 16));
      else bytes.push(...new Uint8Array(host.encode(part, "utf8")));
    }
    return host.decode(new Uint8Array(bytes), "utf8");
  }

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};
    constructor(init = "") {
      if (typeof init === "object" && init !== null) {
        const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
        for (const [name, value] of pairs) this.#pairs.push([String(name), String(value)]);
      } else {
        this.#read(String(init));
      }
    }
    static attach(query, changed) {
      const params = new URLSearchParams(query);
      params.#changed = changed;
      return params;
    }
    #read(query) {
      this.#pairs = query.replace(/^\?/, "").split("&").filter((part) => part !== "").map((part) => {
        const at = part.indexOf("=");
        return at < 0 ? [unescapeForm(part), ""] : [unescapeForm(part.slice(0, at)), unescapeForm(part.slice(at + 1))];
      });
    }
    get size() { return this.#pairs.length; }
    append(name, value) { this.#pairs.push([String(name), String(value)]); this.#changed(this); }
    delete(name) { this.#pairs = this.#pairs.filter(([known]) => known !== String(name)); this.#changed(this); }
    get(name) { return this.#pairs.find(([known]) => known === String(name))?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([known]) => known === String(name)).map(([, value]) => value); }
    has(name) { return this.#pairs.some(([known]) => known === String(name)); }
    set(name, value) {
      const at = this.#pairs.findIndex(([known]) => known === String(name));
      if (at < 0) return this.append(name, value);
      const kept = this.#pairs.filter(([known], index) => known !== String(name) || index === at);
      kept[kept.findIndex(([known]) => known === String(name))] = [String(name), String(value)];
      this.#pairs = kept;
      this.#changed(this);
    }
    sort() { this.#pairs.sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0); this.#changed(this); }
    forEach(callback, thisValue) { for (const [name, value] of this) callback.call(thisValue, value, name, this); }
    *entries() { yield* this.#pairs.map((pair) => [...pair]); }
    *keys() { for (const [name] of this.#pairs) yield name; }
    *values() { for (const [, value] of this.#pairs) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#pairs.map(([name, value]) => `${escapeForm(name)}=${escapeForm(value)}`).join("&"); }
    [internals.inspect.custom]() {
      const shown = this.#pairs.map(([name, value]) => `${internals.inspect(name)} => ${internals.inspect(value)}`);
      return shown.length === 0 ? "URLSearchParams {}" : `URLSearchParams { ${shown.join(", ")} }`;
    }
  }

  const URL_PARTS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
  let readPart;
  let writePart;
  class URL {
    #parts;
    #params;
    static {
      readPart = (url, name) => url.#parts[name];
      writePart = (url, name, value) => {
        const parts = host.changeUrl(url.#parts.href, name, String(value));
        if (parts === null) {
          if (name === "href") throw coded(TypeError, "ERR_INVALID_URL", "Invalid URL");
          return;
        }
        url.#parts = parts;
        if (name !== "hash") url.#params = undefined;
      };
    }
    constructor(text, base) {
      const parts = host.parseUrl(String(text), base === undefined ? undefined : String(base));
      if (parts === null) {
        const error = coded(TypeError, "ERR_INVALID_URL", "Invalid URL");
        error.input = String(text);
        throw error;
      }
      this.#parts = parts;
    }
    static canParse(text, base) { return host.parseUrl(String(text), base === undefined ? undefined : String(base)) !== null; }
    get searchParams() {
      this.#params ??= URLSearchParams.attach(this.#parts.search, (params) => {
        const kept = this.#params;
        writePart(this, "search", params.toString());
        this.#params = kept;
      });
      return this.#params;
    }
    toString() { return this.#parts.href; }
    toJSON() { return this.#parts.href; }
    [internals.inspect.custom](depth) {
      if (depth < 0) return "[URL]";
      return `URL ${internals.inspect({ ...this.#parts, searchParams: this.searchParams })}`;
    }
  }
  for (const name of URL_PARTS) {
    Object.defineProperty(URL.prototype, name, {
      configurable: true,
      enumerable: true,
      get() { return readPart(this, name); },
      set: name === "origin" ? undefined : function (value) { writePart(this, name, value); },
    });
  }

  class Event {
    constructor(type, options = {}) {
      this.type = String(type);
      this.cancelable = Boolean(options.cancelable);
      this.defaultPrevented = false;
      this.target = null;
      this.timeStamp = host.monotonic() - internals.startedAt;
    }
    preventDefault() { if (this.cancelable) this.defaultPrevented = true; }
  }
  class EventTarget {
    #listeners = new Map();
    addEventListener(type, listener, options) {
      if (!this.#listeners.has(type)) this.#listeners.set(type, []);
      this.#listeners.get(type).push({ listener, once: Boolean(options?.once) });
    }
    removeEventListener(type, listener) {
      this.#listeners.set(type, (this.#listeners.get(type) ?? []).filter((known) => known.listener !== listener));
    }
    dispatchEvent(event) {
      event.target = this;
      for (const { listener, once } of [...(this.#listeners.get(event.type) ?? [])]) {
        if (once) this.removeEventListener(event.type, listener);
        typeof listener === "function" ? listener.call(this, event) : listener.handleEvent(event);
      }
      this[`on${event.type}`]?.(event);
      return !event.defaultPrevented;
    }
  }
  class AbortSignal extends EventTarget {
    aborted = false;
    reason = undefined;
    static abort(reason) { const signal = new AbortSignal(); stop(signal, reason); return signal; }
    static timeout(delay) {
      const signal = new AbortSignal();
      internals.timers.setTimeout(() => stop(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError")), delay).unref();
      return signal;
    }
    throwIfAborted() { if (this.aborted) throw this.reason; }
  }
  function stop(signal, reason) {
    if (signal.aborted) return;
    signal.aborted = true;
    signal.reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
    signal.dispatchEvent(new Event("abort"));
  }
  class AbortController {
    signal = new AbortSignal();
    abort(reason) { stop(this.signal, reason); }
  }

  const performance = {
    now: () => host.monotonic() - internals.startedAt,
    get timeOrigin() { return Date.now() - performance.now(); },
    mark() {},
    measure() {},
    toJSON() { return { timeOrigin: performance.timeOrigin }; },
  };

  function getRandomValues(target) {
    const view = bytesOf(target);
    if (view.length > 65536) throw new DOMException(`The requested length exceeds 65,536 bytes`, "QuotaExceededError");
    view.set(new Uint8Array(host.randomBytes(view.length)));
    return target;
  }
  function randomUUID() {
    const bytes = new Uint8Array(host.randomBytes(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = host.decode(bytes, "hex");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
  }

  internals.web = {
    TextEncoder, TextDecoder, btoa, atob, DOMException, structuredClone, URL, URLSearchParams, Event, EventTarget, AbortSignal, AbortController, performance,
    crypto: { getRandomValues, randomUUID },
  };
});
