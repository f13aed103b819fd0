// `fetch` with `Headers`, `Request` and `Response`. Bodies come and go whole; what may be asked, the host decides.
(function (host, internals) {
  "use strict";

  const { bytesOf, coded, inspect, web } = internals;
  const { AbortSignal, TextDecoder, URL, URLSearchParams } = web;
  const MAX_REDIRECTS = 20;
  const REDIRECTS = [301, 302, 303, 307, 308];
  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

  class Headers {
    #pairs = [];
    constructor(init = undefined) {
      if (init === undefined || init === null) return;
      const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
      for (const [name, value] of pairs) this.append(name, value);
    }
    append(name, value) { this.#pairs.push([nameOf(name), valueOf(name, value)]); }
    delete(name) { const key = nameOf(name); this.#pairs = this.#pairs.filter(([known]) => known !== key); }
    get(name) {
      const key = nameOf(name);
      const values = this.#pairs.filter(([known]) => known === key).map(([, value]) => value);
      return values.length === 0 ? null : values.join(", ");
    }
    getSetCookie() { return this.#pairs.filter(([known]) => known === "set-cookie").map(([, value]) => value); }
    has(name) { const key = nameOf(name); return this.#pairs.some(([known]) => known === key); }
    set(name, value) { const text = valueOf(name, value); this.delete(name); this.#pairs.push([nameOf(name), text]); }
    forEach(callback, thisValue) { for (const [name, value] of this) callback.call(thisValue, value, name, this); }
    *entries() {
      for (const name of [...new Set(this.#pairs.map(([known]) => known))].sort()) {
        if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
        else yield [name, this.get(name)];
      }
    }
    *keys() { for (const [name] of this) yield name; }
    *values() { for (const [, value] of this) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    [inspect.custom]() { return `Headers ${inspect(Object.fromEntries(this))}`; }
  }
  function nameOf(name) {
    const text = String(name);
    if (!TOKEN.test(text)) throw new TypeError(`Invalid header name: ${inspect(text)}`);
    return text.toLowerCase();
  }
  function valueOf(name, value) {
    const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[^\x01-\xff]|[\r\n]/.test(text)) throw new TypeError(`Invalid value of the header ${inspect(String(name))}: ${inspect(text)}`);
    return text;
  }

  // The bytes of a body and the kind of text they are, or nothing.
  function bodyOf(value) {
    if (value === undefined || value === null) return { bytes: undefined, type: undefined };
    if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return { bytes: new Uint8Array(bytesOf(value)), type: undefined };
    const form = value instanceof URLSearchParams;
    return { bytes: new Uint8Array(host.encode(String(value), "utf8")), type: form ? "application/x-www-form-urlencoded;charset=UTF-8" : "text/plain;charset=UTF-8" };
  }

  class Message {
    #bytes;
    #used = false;
    constructor(bytes, headers) {
      this.#bytes = bytes;
      this.headers = headers;
    }
    get bodyUsed() { return this.#used; }
    async bytes() {
      if (this.#used) throw new TypeError("Body is unusable: Body has already been read");
      this.#used = this.#bytes !== undefined;
      return this.#bytes ?? new Uint8Array(0);
    }
    async arrayBuffer() { return (await this.bytes()).slice().buffer; }
    async text() {
      const coding = this.headers.get("content-encoding") ?? "identity";
      if (coding !== "identity") throw new TypeError(`The body is encoded as \`${coding}\`, which is not decoded here; arrayBuffer() gives it as it came`);
      return new TextDecoder().decode(await this.bytes());
    }
    async json() { return JSON.parse(await this.text()); }
    static unread(message) {
      if (message.#used) throw new TypeError("Body is unusable: Body has already been read");
      return message.#bytes;
    }
  }

  class Request extends Message {
    constructor(input, init = {}) {
      const base = input instanceof Request ? input : undefined;
      const url = new URL(base === undefined ? String(input) : base.url);
      if (url.username !== "" || url.password !== "") throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${url.href}`);
      const method = String(init.method ?? base?.method ?? "GET").toUpperCase();
      if (!TOKEN.test(method)) throw new TypeError(`${inspect(method)} is not a valid HTTP method.`);
      const { bytes, type } = init.body === undefined && base !== undefined ? { bytes: Message.unread(base), type: undefined } : bodyOf(init.body);
      if (bytes !== undefined && (method === "GET" || method === "HEAD")) throw new TypeError("Request with GET/HEAD method cannot have body.");
      const headers = new Headers(init.headers ?? base?.headers);
      if (type !== undefined && !headers.has("content-type")) headers.set("content-type", type);
      super(bytes, headers);
      this.url = url.href;
      this.method = method;
      this.redirect = init.redirect ?? base?.redirect ?? "follow";
      if (!["follow", "error", "manual"].includes(this.redirect)) throw new TypeError(`${inspect(this.redirect)} is not a way to treat redirects: follow, error or manual`);
      this.signal = init.signal ?? base?.signal ?? new AbortSignal();
    }
    clone() { return new Request(this); }
  }

  class Response extends Message {
    constructor(body = null, init = {}) {
      const { bytes, type } = bodyOf(body);
      const headers = new Headers(init.headers);
      if (type !== undefined && !headers.has("content-type")) headers.set("content-type", type);
      super(bytes, headers);
      this.status = init.status ?? 200;
      if (!Number.isInteger(this.status) || this.status < 200 || this.status > 599) throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
      this.statusText = String(init.statusText ?? "");
      this.url = "";
      this.redirected = false;
      this.type = "default";
    }
    get ok() { return this.status >= 200 && this.status <= 299; }
    clone() {
      const copy = new Response(Message.unread(this), { status: this.status, statusText: this.statusText, headers: this.headers });
      return Object.assign(copy, { url: this.url, redirected: this.redirected, type: this.type });
    }
    static json(value, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has("content-type")) headers.set("content-type", "application/json");
      return new Response(JSON.stringify(value), { ...init, headers });
    }
    static redirect(url, status = 302) { return new Response(null, { status, headers: { location: new URL(url).href } }); }
    static error() { return Object.assign(new Response(), { status: 0, type: "error" }); }
  }

  function failed(text, code) {
    const cause = code === undefined ? new Error(text) : coded(Error, code, text);
    return Object.assign(new TypeError(`fetch failed: ${text}`), { cause });
  }

  // One request and its answer.
  function exchange(method, url, headers, bytes, signal) {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const number = host.startRequest(method, url, [...headers], bytes, (outcome) => {
        signal.removeEventListener("abort", stop);
        if (outcome.error === undefined) resolve(outcome);
        else reject(failed(outcome.text, outcome.error === "denied" ? "EACCES" : outcome.error === "timed-out" ? "ETIMEDOUT" : undefined));
      });
      function stop() {
        host.cancelRequest(number);
        reject(signal.reason);
      }
      signal.addEventListener("abort", stop, { once: true });
    });
  }

  async function fetch(input, init = undefined) {
    const request = new Request(input, init ?? {});
    const headers = new Headers(request.headers);
    if (!headers.has("accept")) headers.set("accept", "*/*");
    if (!headers.has("user-agent")) headers.set("user-agent", "hotcell");
    let { method, url } = request;
    let bytes = request.method === "GET" || request.method === "HEAD" ? undefined : await request.bytes();
    for (let redirects = 0; ; redirects += 1) {
      const answer = await exchange(method, url, headers, bytes, request.signal);
      const answered = new Headers(answer.headers);
      const place = REDIRECTS.includes(answer.status) ? answered.get("location") : null;
      if (place === null || request.redirect === "manual") return respond(answer, answered, url, redirects > 0);
      if (request.redirect === "error") throw failed(`unexpected redirect to ${inspect(place)}`);
      if (redirects === MAX_REDIRECTS) throw failed("redirect count exceeded");
      if (!URL.canParse(place, url)) throw failed(`the server sends on to ${inspect(place)}, which is no address`);
      const next = new URL(place, url);
      if ((answer.status === 303 && method !== "HEAD") || (answer.status < 303 && method === "POST")) {
        method = "GET";
        bytes = undefined;
        for (const name of ["content-encoding", "content-language", "content-location", "content-type"]) headers.delete(name);
      }
      // What proves to one server who asks is not for another.
      if (next.origin !== new URL(url).origin) for (const name of ["authorization", "cookie", "proxy-authorization"]) headers.delete(name);
      url = next.href;
    }
  }

  function respond(answer, headers, url, redirected) {
    const body = [204, 205, 304].includes(answer.status) ? null : answer.body;
    const status = answer.status < 200 || answer.status > 599 ? 200 : answer.status;
    const response = new Response(body, { status, statusText: answer.reason, headers });
    return Object.assign(response, { status: answer.status, url: url.split("#")[0], redirected, type: "basic" });
  }

  Object.assign(web, { fetch, Headers, Request, Response });
});
