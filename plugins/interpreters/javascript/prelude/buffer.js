// `Buffer`: bytes with encodings. A subclass of Uint8Array, as in Node.
(function (host, internals) {
  "use strict";

  const ENCODINGS = {
    utf8: "utf8", "utf-8": "utf8", hex: "hex", base64: "base64", base64url: "base64url", latin1: "latin1", binary: "latin1", ascii: "ascii",
    utf16le: "utf16le", "utf-16le": "utf16le", ucs2: "utf16le", "ucs-2": "utf16le",
  };
  function encodingOf(name = "utf8") {
    const known = ENCODINGS[String(name).toLowerCase()];
    if (known === undefined) throw internals.coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${name}`);
    return known;
  }
  internals.encodingOf = encodingOf;

  class Buffer extends Uint8Array {
    static from(value, encoding, length) {
      if (typeof value === "string") return new Buffer(host.encode(value, encodingOf(encoding)));
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
      if (ArrayBuffer.isView(value) || Array.isArray(value)) {
        const buffer = new Buffer(value.length);
        buffer.set(value);
        return buffer;
      }
      if (value !== null && typeof value === "object" && value.type === "Buffer" && Array.isArray(value.data)) return Buffer.from(value.data);
      if (value !== null && typeof value === "object" && typeof value.valueOf() === "string") return Buffer.from(value.valueOf(), encoding);
      throw internals.coded(TypeError, "ERR_INVALID_ARG_TYPE", `The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array. Received ${internals.inspect(value)}`);
    }
    static alloc(size, fill, encoding) {
      const buffer = new Buffer(size);
      return fill === undefined ? buffer : buffer.fill(fill, 0, size, encoding);
    }
    static allocUnsafe(size) { return new Buffer(size); }
    static isBuffer(value) { return value instanceof Buffer; }
    static isEncoding(name) { return ENCODINGS[String(name).toLowerCase()] !== undefined; }
    static byteLength(value, encoding) { return typeof value === "string" ? host.encode(value, encodingOf(encoding)).byteLength : value.byteLength; }
    static concat(list, total = list.reduce((sum, part) => sum + part.length, 0)) {
      const whole = new Buffer(total);
      let at = 0;
      for (const part of list) {
        if (at >= total) break;
        whole.set(part.subarray(0, total - at), at);
        at += part.length;
      }
      return whole;
    }
    static compare(a, b) {
      const length = Math.min(a.length, b.length);
      for (let index = 0; index < length; index += 1) if (a[index] !== b[index]) return a[index] < b[index] ? -1 : 1;
      return Math.sign(a.length - b.length);
    }
    toString(encoding, start = 0, end = this.length) { return host.decode(this.subarray(start, end), encodingOf(encoding)); }
    toJSON() { return { type: "Buffer", data: Array.from(this) }; }
    equals(other) { return Buffer.compare(this, other) === 0; }
    compare(other) { return Buffer.compare(this, other); }
    slice(start, end) { return this.subarray(start, end); }
    write(text, offset = 0, length = this.length - offset, encoding = "utf8") {
      if (typeof offset === "string") return this.write(text, 0, this.length, offset);
      if (typeof length === "string") return this.write(text, offset, this.length - offset, length);
      const bytes = new Uint8Array(host.encode(String(text), encodingOf(encoding))).subarray(0, Math.min(length, this.length - offset));
      this.set(bytes, offset);
      return bytes.length;
    }
    copy(target, at = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + target.length - at));
      target.set(part, at);
      return part.length;
    }
    fill(value, start = 0, end = this.length, encoding = "utf8") {
      if (typeof value === "number") return super.fill(value, start, end);
      const pattern = typeof value === "string" ? Buffer.from(value, encoding) : value;
      if (pattern.length === 0) return super.fill(0, start, end);
      for (let index = start; index < end; index += 1) this[index] = pattern[(index - start) % pattern.length];
      return this;
    }
    indexOf(value, from = 0, encoding = "utf8") {
      if (typeof value === "number") return super.indexOf(value & 255, from);
      const wanted = typeof value === "string" ? Buffer.from(value, encoding) : value;
      for (let index = from; index + wanted.length <= this.length; index += 1) {
        if (wanted.every((byte, at) => this[index + at] === byte)) return index;
      }
      return -1;
    }
    includes(value, from, encoding) { return this.indexOf(value, from, encoding) >= 0; }
    [internals.inspect.custom]() {
      const shown = host.decode(this.subarray(0, 50), "hex").replace(/..(?=.)/g, "$& ");
      const rest = this.length - 50;
      return `<Buffer${shown === "" ? "" : " " + shown}${rest > 0 ? ` ... ${rest} more byte${rest > 1 ? "s" : ""}` : ""}>`;
    }
  }
  // readUInt16LE, writeDoubleBE and so on, through a DataView of the same bytes.
  const NUMBERS = { UInt8: ["Uint8", 1], Int8: ["Int8", 1], UInt16: ["Uint16", 2], Int16: ["Int16", 2], UInt32: ["Uint32", 4], Int32: ["Int32", 4],
    BigUInt64: ["BigUint64", 8], BigInt64: ["BigInt64", 8], Float: ["Float32", 4], Double: ["Float64", 8] };
  for (const [name, [view, size]] of Object.entries(NUMBERS)) {
    for (const order of size === 1 ? [""] : ["LE", "BE"]) {
      const little = order === "LE";
      const define = (method, value) => Object.defineProperty(Buffer.prototype, method, { value, writable: true, configurable: true });
      const read = function (offset = 0) { return new DataView(this.buffer, this.byteOffset, this.byteLength)[`get${view}`](offset, little); };
      const write = function (value, offset = 0) {
        new DataView(this.buffer, this.byteOffset, this.byteLength)[`set${view}`](offset, value, little);
        return offset + size;
      };
      for (const spelled of name.includes("UInt") ? [name, name.replace("UInt", "Uint")] : [name]) {
        define(`read${spelled}${order}`, read);
        define(`write${spelled}${order}`, write);
      }
    }
  }
  internals.Buffer = Buffer;
});
