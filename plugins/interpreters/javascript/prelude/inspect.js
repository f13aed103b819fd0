// Turns values into the text that `console.log` and `util.inspect` show, close to Node's layout.
// Must not call anything a script can replace: the primordials it needs are captured here, once.
(function (host, internals) {
  "use strict";

  const LINE_WIDTH = 76;
  const MAX_ARRAY_LENGTH = 100;
  const MAX_STRING_LENGTH = 10000;
  const PLAIN_KEY = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
  const custom = Symbol.for("nodejs.util.inspect.custom");

  const { getOwnPropertyDescriptor, getOwnPropertyNames, getOwnPropertySymbols, getPrototypeOf } = Object;
  const ownKeys = Reflect.ownKeys;
  const isArray = Array.isArray;
  const stringify = JSON.stringify;
  const toErrorText = Error.prototype.toString;
  const toISO = Date.prototype.toISOString;
  const toSource = Function.prototype.toString;
  const getTime = Date.prototype.getTime;
  const TypedArray = getPrototypeOf(Uint8Array);

  function quote(text) {
    const cut = text.length > MAX_STRING_LENGTH ? text.slice(0, MAX_STRING_LENGTH) : text;
    let mark = "'";
    if (cut.includes("'")) mark = !cut.includes('"') ? '"' : !cut.includes("`") && !cut.includes("${") ? "`" : "'";
    let out = "";
    for (const character of cut) {
      const code = character.codePointAt(0);
      if (character === mark || character === "\\") out += "\\" + character;
      else if (character === "\n") out += "\\n";
      else if (character === "\t") out += "\\t";
      else if (character === "\r") out += "\\r";
      else if (character === "\b") out += "\\b";
      else if (character === "\f") out += "\\f";
      else if (character === "\v") out += "\\v";
      else if (code < 32 || code === 127) out += "\\x" + code.toString(16).toUpperCase().padStart(2, "0");
      else if (code >= 0xd800 && code <= 0xdfff) out += "\\u" + code.toString(16).toUpperCase();
      else out += character;
    }
    const rest = text.length - cut.length;
    return mark + out + mark + (rest > 0 ? `... ${rest} more character${rest > 1 ? "s" : ""}` : "");
  }

  function primitive(value) {
    switch (typeof value) {
      case "string": return quote(value);
      case "number": return Object.is(value, -0) ? "-0" : String(value);
      case "bigint": return `${value}n`;
      case "symbol": return value.toString();
      default: return String(value);
    }
  }

  function constructorName(value) {
    for (let object = value; object !== null; object = getPrototypeOf(object)) {
      const found = getOwnPropertyDescriptor(object, "constructor");
      if (found && typeof found.value === "function" && found.value.name !== "") return found.value.name;
    }
    return null;
  }

  function keyText(key) {
    if (typeof key === "symbol") return `[${key.toString()}]`;
    return PLAIN_KEY.test(key) ? key : quote(key);
  }

  function errorText(error) {
    let stack;
    try { stack = error.stack; } catch { stack = undefined; }
    let head;
    try { head = toErrorText.call(error); } catch { head = "Error"; }
    if (typeof stack !== "string" || stack === "") return `[${head}]`;
    return stack.startsWith(head) || stack.includes(error.message) ? stack : `${head}\n${stack}`;
  }

  function isNative(value) { return toSource.call(value).includes("[native code]"); }

  function functionText(value) {
    const source = Function.prototype.toString.call(value);
    // Boa shows the source of functions, but not of classes. Those have a prototype that cannot be replaced; so have
    // the constructors of the language itself, which are found on the global object.
    const fixed = Object.getOwnPropertyDescriptor(value, "prototype")?.writable === false;
    const isClass = source.startsWith("class") || (fixed && globalThis[value.name] !== value);
    const kind = isClass ? "class" : "Function";
    if (kind === "class") {
      const parent = getPrototypeOf(value);
      return `[class ${value.name || "(anonymous)"}${parent && parent.name ? ` extends ${parent.name}` : ""}]`;
    }
    const name = constructorName(value) || "Function";
    return value.name ? `[${name}: ${value.name}]` : `[${name} (anonymous)]`;
  }

  // One visit of one `inspect` call: what is open above the current value, and the options.
  function formatValue(visit, value, depth, indent) {
    if (value === null || (typeof value !== "object" && typeof value !== "function")) return primitive(value);
    if (visit.open.includes(value)) {
      if (!visit.circular.includes(value)) visit.circular.push(value);
      return `[Circular *${visit.circular.indexOf(value) + 1}]`;
    }
    const hook = value[custom];
    if (typeof hook === "function" && hook !== inspect) {
      const shown = hook.call(value, visit.depth - depth, { depth: visit.depth - depth }, inspect);
      if (shown !== value) return typeof shown === "string" ? shown : formatValue(visit, shown, depth, indent);
    }
    visit.open.push(value);
    let text = formatObject(visit, value, depth, indent);
    visit.open.pop();
    const index = visit.circular.indexOf(value);
    if (index >= 0) text = `<ref *${index + 1}> ${text}`;
    return text;
  }

  function formatObject(visit, value, depth, indent) {
    const name = constructorName(value);
    const keys = ownKeys(value).filter((key) => getOwnPropertyDescriptor(value, key)?.enumerable);
    const tag = value[Symbol.toStringTag];
    let prefix = name === null ? "[Object: null prototype] " : name === "Object" ? "" : `${name} `;
    if (typeof tag === "string" && tag !== "" && tag !== name) prefix = `${name ?? "Object"} [${tag}] `;
    let brackets = ["{", "}"];
    let entries = null;
    let properties = keys;
    let base = "";

    if (isArray(value) || value instanceof TypedArray) {
      brackets = ["[", "]"];
      prefix = isArray(value) && name === "Array" ? "" : `${name}(${value.length}) `;
      properties = keys.filter((key) => typeof key === "symbol" || !/^(0|[1-9][0-9]*)$/.test(key));
      entries = () => arrayEntries(visit, value, depth, indent);
    } else if (value instanceof Map) {
      prefix = `${name}(${value.size}) `;
      entries = () => Array.from(Map.prototype.entries.call(value), ([key, item]) =>
        `${formatValue(visit, key, depth + 1, indent + 2)} => ${formatValue(visit, item, depth + 1, indent + 2)}`);
    } else if (value instanceof Set) {
      prefix = `${name}(${value.size}) `;
      entries = () => Array.from(Set.prototype.values.call(value), (item) => formatValue(visit, item, depth + 1, indent + 2));
    } else if (typeof value === "function") {
      base = functionText(value);
    } else if (value instanceof Error) {
      base = errorText(value);
      properties = keys.filter((key) => key !== "stack" && key !== "message");
      const cause = getOwnPropertyDescriptor(value, "cause");
      if (cause && !cause.enumerable) entries = () => [`[cause]: ${formatValue(visit, cause.value, depth + 1, indent + 2)}`];
    } else if (value instanceof RegExp) {
      base = RegExp.prototype.toString.call(value);
    } else if (value instanceof Date) {
      base = Number.isNaN(getTime.call(value)) ? "Invalid Date" : toISO.call(value);
    } else if (value instanceof Promise) {
      prefix = "Promise ";
      entries = () => {
        const [state, result] = host.promiseState(value);
        if (state === "pending") return ["<pending>"];
        const shown = formatValue(visit, result, depth + 1, indent + 2);
        return [state === "rejected" ? `<rejected> ${shown}` : shown];
      };
    } else if (value instanceof WeakMap || value instanceof WeakSet) {
      return `${name} { <items unknown> }`;
    } else if (value instanceof String || value instanceof Number || value instanceof Boolean) {
      base = `[${name}: ${primitive(value.valueOf())}]`;
      properties = keys.filter((key) => typeof key === "symbol" || !/^[0-9]+$/.test(key));
    } else if (value instanceof ArrayBuffer) {
      const bytes = new Uint8Array(value);
      entries = () => [`[Uint8Contents]: <${host.decode(bytes.slice(0, 50), "hex").replace(/..(?=.)/g, "$& ")}>`, `byteLength: ${bytes.length}`];
    }

    if (base !== "" && entries === null && properties.length === 0) return base;
    if (depth > visit.depth) return isArray(value) ? "[Array]" : `[${(name ?? "Object: null prototype")}]`;
    const lines = entries === null ? [] : entries();
    for (const key of properties) lines.push(propertyText(visit, value, key, depth, indent));
    if (base !== "") prefix = `${base} `;
    if (lines.length === 0) return `${prefix}${brackets[0]}${brackets[1]}`;
    return layOut(lines, prefix, brackets, indent, isArray(value) && properties.length === 0);
  }

  function arrayEntries(visit, value, depth, indent) {
    const lines = [];
    const length = Math.min(value.length, visit.maxArrayLength);
    let index = 0;
    while (index < length) {
      if (!(index in value)) {
        let holes = 0;
        while (index < value.length && !(index in value)) { holes += 1; index += 1; }
        lines.push(`<${holes} empty item${holes > 1 ? "s" : ""}>`);
        continue;
      }
      lines.push(formatValue(visit, value[index], depth + 1, indent + 2));
      index += 1;
    }
    const rest = value.length - length;
    if (rest > 0 && index < value.length) lines.push(`... ${rest} more item${rest > 1 ? "s" : ""}`);
    return lines;
  }

  function propertyText(visit, object, key, depth, indent) {
    const property = getOwnPropertyDescriptor(object, key);
    if (property.get) return `${keyText(key)}: [${property.set ? "Getter/Setter" : "Getter"}]`;
    if (property.set) return `${keyText(key)}: [Setter]`;
    return `${keyText(key)}: ${formatValue(visit, property.value, depth + 1, indent + 2)}`;
  }

  function layOut(lines, prefix, brackets, indent, isList) {
    const width = lines.reduce((sum, line) => sum + line.length + 2, 0);
    const nested = lines.some((line) => line.includes("\n"));
    const open = prefix + brackets[0];
    if (!nested && width + open.length + indent <= LINE_WIDTH && !prefix.includes("\n") && lines.length <= (isList ? 6 : 32)) {
      return `${open} ${lines.join(", ")} ${brackets[1]}`;
    }
    const margin = "\n" + " ".repeat(indent + 2);
    if (isList && !nested && lines.length > 6 && width / lines.length <= 18) return `${open}${margin}${fill(lines, indent, margin)}\n${" ".repeat(indent)}${brackets[1]}`;
    return `${open}${margin}${lines.join("," + margin)}\n${" ".repeat(indent)}${brackets[1]}`;
  }

  // Short elements of a long list share lines.
  function fill(lines, indent, margin) {
    let out = "";
    let column = indent;
    lines.forEach((line, index) => {
      const piece = line + (index + 1 < lines.length ? "," : "");
      if (column > indent && column + piece.length + 1 > LINE_WIDTH) {
        out += margin;
        column = indent;
      } else if (index > 0) {
        out += " ";
      }
      out += piece;
      column += piece.length + 1;
    });
    return out;
  }

  function inspect(value, options, ...legacy) {
    const given = typeof options === "boolean" ? { depth: legacy[0] } : options ?? {};
    const depth = given.depth === undefined ? 2 : given.depth === null ? Infinity : given.depth;
    const maxArrayLength = given.maxArrayLength === undefined ? MAX_ARRAY_LENGTH : given.maxArrayLength ?? Infinity;
    return formatValue({ open: [], circular: [], depth, maxArrayLength }, value, 0, 0);
  }
  inspect.custom = custom;
  inspect.defaultOptions = { depth: 2, maxArrayLength: MAX_ARRAY_LENGTH };

  function placeholder(kind, value) {
    switch (kind) {
      case "s":
        if (typeof value === "object" && value !== null && typeof value.toString === "function"
          && value.toString !== Object.prototype.toString && value.toString !== Error.prototype.toString) return String(value);
        return typeof value === "string" ? value : inspect(value, { depth: 0 });
      case "d": return typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : primitive(Number(value));
      case "i": return typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : primitive(parseInt(value));
      case "f": return typeof value === "symbol" ? "NaN" : primitive(parseFloat(value));
      case "j": try { return stringify(value); } catch { return "[Circular]"; }
      case "O": return inspect(value, { depth: 4 });
      case "o": return inspect(value, { depth: 4 });
      default: return "";
    }
  }

  function format(...values) {
    const [first] = values;
    if (typeof first !== "string") return values.map((value) => typeof value === "string" ? value : inspect(value)).join(" ");
    if (values.length === 1) return first;
    let used = 1;
    const text = first.replace(/%([sdifjoOc%])/g, (whole, kind) => {
      if (kind === "%") return "%";
      if (used >= values.length) return whole;
      return placeholder(kind, values[used++]);
    });
    return [text, ...values.slice(used).map((value) => typeof value === "string" ? value : inspect(value))].join(" ");
  }

  internals.inspect = inspect;
  internals.format = format;
});
