// Puts a file in TypeScript and what it imports from other files of its folder into one text, which the JavaScript cell can run: it has
// no files that could be imported.
//
// What is wanted comes as the state: `file`, `source`, and `modules`, the files that were looked for by the paths that name them, null
// where there is none. The answer is one JSON object: `needs`, paths that have to be looked for first, or `bundle`, or `error`.
// Every other file becomes a function that is called once, before those that import it; types stay, for whoever lowers the text.

(() => {
  const { readFileSync } = require("node:fs");
  const wanted = JSON.parse(process.env.GRAPH_STATE ?? readFileSync(process.env.GRAPH_STATE_FILE, "utf8"));
  const answer = (object) => {
    process.stdout.write(JSON.stringify(object));
    process.exit(0);
  };

  const CLOSES = { "(": ")", "[": "]", "{": "}" };
  // Behind one of these a slash begins a regular expression.
  const BEFORE_PATTERN = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|new|delete|void|throw|yield|await))$/;

  // The place behind a comment, a text, a template or a regular expression that begins here; the same place if none does.
  function behind(text, at) {
    if (text.startsWith("//", at)) return text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at);
    if (text.startsWith("/*", at)) return text.indexOf("*/", at + 2) < 0 ? text.length : text.indexOf("*/", at + 2) + 2;
    const sign = text[at];
    if (sign === "/") {
      if (!BEFORE_PATTERN.test(text.slice(Math.max(0, at - 40), at).trimEnd())) return at;
      let end = at + 1;
      let isSet = false;
      while (end < text.length && text[end] !== "\n" && (isSet || text[end] !== "/")) {
        if (text[end] === "[") isSet = true;
        if (text[end] === "]") isSet = false;
        end += text[end] === "\\" ? 2 : 1;
      }
      return text[end] === "/" ? end + 1 : at;
    }
    if (sign !== '"' && sign !== "'" && sign !== "`") return at;
    let end = at + 1;
    while (end < text.length && text[end] !== sign) {
      if (sign === "`" && text.startsWith("${", end)) {
        let depth = 0;
        for (end += 1; end < text.length; ) {
          const next = end > at ? behind(text, end) : end;
          if (next > end) { end = next; continue; }
          depth += text[end] === "{" ? 1 : text[end] === "}" ? -1 : 0;
          end += 1;
          if (depth === 0) break;
        }
        continue;
      }
      end += text[end] === "\\" ? 2 : 1;
    }
    return end + 1;
  }

  // The places of statements outside of all brackets that begin with these words.
  function* statements(text) {
    let open = 0;
    let isLine = true;
    for (let at = 0; at < text.length; ) {
      if (isLine && open === 0 && /^(?:import|export)\b(?!\s*[(.])/.test(text.slice(at, at + 10))) yield at;
      const next = behind(text, at);
      if (next > at) {
        isLine = isLine && text[at] === "/";
        at = next;
        continue;
      }
      const sign = text[at];
      if (CLOSES[sign]) open += 1;
      else if (sign === ")" || sign === "]" || sign === "}") open = Math.max(0, open - 1);
      isLine = sign === "\n" || sign === ";" || sign === "}" || (isLine && /\s/.test(sign));
      at += 1;
    }
  }

  // What stands before a condition, behind which a brace begins a block. Behind other brackets it begins the body of a function.
  const BEFORE_CONDITION = /\b(?:if|for|for\s+await|while|switch|catch|with)\s*$/;
  // How much of a text is looked at before a brace.
  const MOST_BEFORE = 500;

  // Whether a file waits for something while it is evaluated, outside of its functions.
  function waits(text) {
    const before = (end, from = 0) => text.slice(Math.max(from, end - MOST_BEFORE), end);
    const open = [];
    let functions = 0;
    // The last brackets before a brace, which may be the parameters of a function.
    let last;
    for (let at = 0; at < text.length; ) {
      const next = behind(text, at);
      if (next > at) { at = next; continue; }
      const sign = text[at];
      if (functions === 0 && /^await\b/.test(text.slice(at, at + 6)) && !/[\w$.]/.test(text[at - 1] ?? "")) return true;
      if (sign === "{") {
        const between = last ? before(at, last.to) : "";
        // The type of a result may stand between them, and have braces itself.
        const isBehind = last !== undefined && /^\s*(?::[^;=]*)?$/.test(between) && !BEFORE_CONDITION.test(before(last.from));
        const isType = isBehind && /[:|&<,]\s*$/.test(between);
        const isFunction = /=>\s*$/.test(before(at)) || (isBehind && !isType);
        open.push({ at, isFunction, last: isType ? last : undefined });
        functions += isFunction ? 1 : 0;
        last = undefined;
      } else if (CLOSES[sign]) open.push({ at, isFunction: false });
      else if (sign === ")" || sign === "]" || sign === "}") {
        const closed = open.pop();
        functions -= closed?.isFunction ? 1 : 0;
        if (sign === ")" && closed) last = { from: closed.at, to: at + 1 };
        if (sign === "}") last = closed?.last;
      } else if (sign === ";") last = undefined;
      at += 1;
    }
    return false;
  }

  const plain = (text) => text.replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, "");
  // What is listed in braces, without types: the name there, and the name here.
  const listed = (text) =>
    plain(text).split(",").map((part) => part.trim()).filter((part) => part !== "" && !/^type\s+[\w$]/.test(part)).map((part) => {
      const [first, second] = part.split(/\s+as\s+/).map((name) => name.trim());
      return [first, second ?? first];
    });

  const FROM = /\s*from\s*(["'])([^"'\n]+)\1\s*(?:(?:with|assert)\s*\{[^}]*\})?\s*;?/y;
  const IMPORT = /import\s+(type\s+(?!from\b)(?=[\w$*{]))?(?:([\w$]+)\s*)?,?\s*(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?/y;
  const BARE = /import\s*(["'])([^"'\n]+)\1\s*;?/y;
  const EXPORT_LIST = /export\s+(?:type\s+)?(?:\*(?:\s*as\s+([\w$]+))?|\{([^}]*)\})/y;
  const match = (pattern, text, at) => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };

  // The path that a name means in a file; none for modules of Node and packages.
  function path(from, name) {
    if (!/^\.\.?\//.test(name)) return undefined;
    const parts = from.split("/").slice(0, -1);
    for (const part of name.split("/")) {
      if (part === "..") parts.length > 0 && parts[parts.length - 1] !== ".." ? parts.pop() : parts.push("..");
      else if (part !== "." && part !== "") parts.push(part);
    }
    return parts.join("/");
  }

  const needs = new Set();
  const read = new Map();
  const problems = [];

  // What a file imports and exports, with the text that remains of it once that is taken out.
  function look(file, text, isFirst) {
    const known = read.get(file);
    if (known) return known;
    text = text.replace(/^\uFEFF?#!/, "//");
    const module = { file, pieces: [], imports: [], exports: new Map(), all: [], number: read.size };
    read.set(file, module);
    let done = 0;
    const replace = (from, to, by) => {
      // Lines stay where they are.
      const lines = text.slice(from, to).split("\n").length - 1;
      module.pieces.push(text.slice(done, from), by, "\n".repeat(Math.max(0, lines - (typeof by === "string" ? by.split("\n").length - 1 : 0))));
      done = to;
    };
    const of = (name) => {
      const key = path(file, name);
      if (key === undefined) return { outside: name };
      if (!/^(?:\.\.\/)*(?:[\w-][\w.-]*\/)*[\w-][\w.-]*$/.test(key) || key.endsWith(".json")) {
        problems.push(`\`${file}\` imports \`${name}\`, and only code is imported: read other files with \`fs\` from a directory that is granted`);
        return { key: undefined, outside: undefined };
      }
      if (!(key in wanted.modules)) needs.add(key);
      else if (wanted.modules[key] === null) problems.push(`\`${file}\` imports \`${name}\`, and there is no such file`);
      return { key };
    };
    for (const at of statements(text)) {
      if (at < done) continue;
      const bare = match(BARE, text, at);
      if (bare) {
        const target = of(bare[2]);
        if (target.outside !== undefined && isFirst) continue;
        module.imports.push({ ...target, values: [] });
        replace(at, at + bare[0].length, "");
        continue;
      }
      const head = match(IMPORT, text, at);
      const from = head && match(FROM, text, at + head[0].length);
      if (head && from) {
        const target = of(from[2]);
        const isType = head[1] !== undefined;
        if (target.outside !== undefined && (isFirst || isType)) {
          if (isType && !isFirst) replace(at, at + head[0].length + from[0].length, "");
          continue;
        }
        const values = isType ? [] : listed(head[4] ?? "");
        if (!isType && head[2]) values.push(["default", head[2]]);
        const whole = isType ? undefined : head[3];
        const one = { ...target, values, whole };
        module.imports.push(one);
        replace(at, at + head[0].length + from[0].length, one);
        continue;
      }
      const list = match(EXPORT_LIST, text, at);
      if (list) {
        const source = match(FROM, text, at + list[0].length);
        if (isFirst && !(source && path(file, source[2]) !== undefined)) continue;
        const end = at + list[0].length + (source ? source[0].length : (/^\s*;/.exec(text.slice(at + list[0].length)) ?? [""])[0].length);
        if (source) {
          const target = of(source[2]);
          const one = { ...target, values: [], whole: undefined };
          module.imports.push(one);
          for (const [inside, outside] of listed(list[2] ?? "")) module.exports.set(outside, { from: one, name: inside });
          if (list[2] === undefined) list[1] ? module.exports.set(list[1], { from: one }) : module.all.push(one);
        } else {
          for (const [inside, outside] of listed(list[2] ?? "")) module.exports.set(outside, inside);
        }
        replace(at, end, "");
        continue;
      }
      if (isFirst) continue;
      const usual = /^export\s+default\s+((?:async\s+)?function\s*\*?\s*|(?:abstract\s+)?class\s+)?([\w$]*)/.exec(text.slice(at));
      if (usual) {
        const name = usual[1] && usual[2] && usual[2] !== "extends" ? usual[2] : "__value";
        module.exports.set("default", name);
        const word = /^export\s+default\s+/.exec(text.slice(at))[0];
        replace(at, at + word.length, name === "__value" ? "const __value = " : "");
        continue;
      }
      const own = /^export\s+(?=(?:declare\s+|async\s+|abstract\s+)*(?:const\s+enum|function\s*\*?|class|const|let|var|enum|interface|type|namespace)\s*([\w$]*))/.exec(text.slice(at));
      if (!own) {
        if (/^export\b/.test(text.slice(at))) problems.push(`\`${file}\` exports something in a way that is not known here: \`${text.slice(at, at + 40).split("\n")[0]}\``);
        continue;
      }
      if (own[1]) module.exports.set(own[1], own[1]);
      replace(at, at + own[0].length, "");
    }
    module.pieces.push(text.slice(done));
    return module;
  }

  const first = look(wanted.file, wanted.source, true);
  const order = [];
  const under = [];
  // The modules that one needs, each before those that import it.
  function visit(module) {
    if (order.includes(module)) return;
    if (under.includes(module)) {
      const names = [...under.slice(under.indexOf(module)), module].map((one) => `\`${one.file}\``);
      problems.push(`these files import each other in a circle: ${names.join(", ")}`);
      return;
    }
    under.push(module);
    for (const one of module.imports) {
      const found = one.key === undefined ? undefined : wanted.modules[one.key];
      if (found) visit(one.module = look(found.file, found.source, false));
    }
    under.pop();
    order.push(module);
  }
  visit(first);
  if (problems.length > 0) return answer({ error: problems[0] });
  if (needs.size > 0) return answer({ needs: [...needs] });

  // Which names of each module are asked for; all that it says of itself where it is asked for whole.
  const asked = new Map(order.map((module) => [module, new Set()]));
  for (const module of [...order].reverse()) {
    for (const one of module.imports.filter((one) => one.module)) {
      const names = asked.get(one.module);
      one.values.forEach(([name]) => names.add(name));
      if (one.whole) one.module.exports.forEach((_, name) => names.add(name));
    }
    for (const [name, inside] of module.exports) {
      if (typeof inside !== "object" || !inside.from.module) continue;
      if (inside.name !== undefined) asked.get(inside.from.module).add(inside.name);
      else inside.from.module.exports.forEach((_, name) => asked.get(inside.from.module).add(name));
      asked.get(module).add(name);
    }
    // `export *` hands on everything but what is exported by default.
    for (const one of module.all.filter((one) => one.module)) {
      asked.get(module).forEach((name) => name !== "default" && asked.get(one.module).add(name));
    }
  }

  const outside = new Map();
  const called = (one) => {
    if (one.module) return `__module${one.module.number}`;
    if (!outside.has(one.outside)) outside.set(one.outside, `__outside${outside.size}`);
    return outside.get(one.outside);
  };
  const written = (one) => {
    if (typeof one === "string") return one;
    const from = called(one);
    const parts = one.values.map(([name, own]) => (name === own ? own : `${JSON.stringify(name)}: ${own}`));
    const all = parts.length > 0 ? `const { ${parts.join(", ")} } = ${from}; ` : "";
    return one.whole ? `${all}const ${one.whole} = ${from}; ` : all;
  };
  const body = (module) => module.pieces.map(written).join("");
  const gives = (module) => {
    const getters = [...asked.get(module)].map((name) => {
      const inside = module.exports.get(name);
      const key = JSON.stringify(name);
      if (typeof inside === "object") {
        const from = called(inside.from);
        return `get ${key}() { return ${inside.name === undefined ? from : `${from}[${JSON.stringify(inside.name)}]`}; }`;
      }
      // A type has no value; whoever imports it uses none.
      if (inside !== undefined) return `get ${key}() { try { return ${inside}; } catch { return undefined; } }`;
      // It may be one of several that a statement declares.
      const all = module.all.map((one) => `${called(one)}[${key}]`).join(" ?? ");
      const none = `throw new SyntaxError(${JSON.stringify(`\`${module.file}\` exports no \`${name}\``)})`;
      if (name === "default") return `get ${key}() { ${none}; }`;
      return `get ${key}() { try { return ${name}; } catch { ${all ? `return ${all}` : none}; } }`;
    });
    return `return { ${getters.join(", ")} };`;
  };
  const parts = order.filter((module) => module !== first).map((module) => {
    const text = body(module);
    const [begins, ends] = waits(text) ? ["await (async ", ")()"] : ["(", ")()"];
    return `const __module${module.number}: any = ${begins}() => {\n${text}\n${gives(module)}\n}${ends};\n`;
  });
  const own = body(first);
  const imports = [...outside].map(([name, as]) => `import * as ${as} from ${JSON.stringify(name)};\n`).join("");
  answer({ bundle: parts.length + imports.length > 0 ? `${imports}${parts.join("")}${own}` : wanted.source });
})();
