// Stands behind the text of a file in TypeScript in the JavaScript cell: describes the functions that the file exports, or calls
// one of them.
//
// What is wanted comes as the state: `file`, `source` and `agent` of the file, and for a call `function` and
// `arguments`. The answer is the last line of the output, one JSON object: `tools`, or `value` or `error`.
// Types are gone when this runs, so they are read from the source.

;(() => {
  const { readFileSync } = require("node:fs");
  const told = process.env.GRAPH_STATE ?? readFileSync(process.env.GRAPH_STATE_FILE, "utf8");
  const wanted = JSON.parse(told);
  delete process.env.GRAPH_STATE;
  delete process.env.GRAPH_STATE_FILE;
  // What such files know from Loki.
  const folder = `/llm/agents/${wanted.agent}`;
  Object.assign(process.env, {
    LLM_ROOT_DIR: "/llm", LLM_AGENT_NAME: wanted.agent, LLM_AGENT_ROOT_DIR: folder, LLM_AGENT_FUNC: wanted.function ?? "",
  });

  const write = process.stdout.write.bind(process.stdout);
  const exit = process.exit.bind(process);
  const later = globalThis.setTimeout;
  const answer = (object) => {
    const end = () => {
      write(`\n${JSON.stringify(object)}\n`);
      exit(0);
    };
    // The exit of a module that has waited for something is lost. A timer ends it; what other timers write before that is no answer.
    later(end, 0);
    end();
  };

  // --- The text of a file -------------------------------------------------------------------------------------------------

  const source = wanted.source;
  const CLOSES = { "(": ")", "[": "]", "{": "}", "<": ">" };

  // The place behind a comment, a text or a template that begins here; the same place if none does.
  function behind(text, at) {
    if (text.startsWith("//", at)) return (text.indexOf("\n", at) + 1) || text.length;
    if (text.startsWith("/*", at)) return (text.indexOf("*/", at + 2) + 2) || text.length;
    const quote = text[at];
    if (quote !== '"' && quote !== "'" && quote !== "`") return at;
    let end = at + 1;
    while (end < text.length && text[end] !== quote) end += text[end] === "\\" ? 2 : 1;
    return end + 1;
  }

  // The place of the bracket that closes the one here.
  function closing(text, at) {
    const open = [];
    while (at < text.length) {
      const next = behind(text, at);
      if (next > at) { at = next; continue; }
      const letter = text[at];
      // An arrow is no bracket.
      if (letter === "=" && text[at + 1] === ">") { at += 2; continue; }
      if (CLOSES[letter]) open.push(CLOSES[letter]);
      else if (letter === open[open.length - 1]) {
        open.pop();
        if (open.length === 0) return at;
      }
      at += 1;
    }
    return text.length;
  }

  // The parts of a text between these signs outside of all brackets, texts and comments. Comments are left out.
  function parts(text, sign) {
    const all = [""];
    let at = 0;
    while (at < text.length) {
      const next = behind(text, at);
      if (next > at) {
        if (text[at] !== "/") all[all.length - 1] += text.slice(at, next);
        at = next;
      } else if (text.startsWith(sign, at) && !(sign === "=" && text[at + 1] === ">")) {
        all.push("");
        at += sign.length;
      } else if (CLOSES[text[at]]) {
        const end = closing(text, at) + 1;
        all[all.length - 1] += text.slice(at, end);
        at = end;
      } else {
        // An arrow whole, so that its second half is not taken for a bracket.
        const length = text.startsWith("=>", at) ? 2 : 1;
        all[all.length - 1] += text.slice(at, at + length);
        at += length;
      }
    }
    return all.map((part) => part.trim());
  }

  // --- Types --------------------------------------------------------------------------------------------------------------

  const NOTHING = new Set(["null", "undefined", "void"]);
  const SIMPLE = { string: "string", number: "number", boolean: "boolean", bigint: "integer", object: "object", null: "null" };

  function literal(type) {
    if (/^(["'`])(?:(?!\1)[^\\]|\\.)*\1$/s.test(type)) return { value: type.slice(1, -1).replace(/\\(.)/gs, "$1") };
    if (/^-?\d[\d_]*(\.\d+)?$/.test(type)) return { value: Number(type.replaceAll("_", "")) };
    return type === "true" || type === "false" ? { value: type === "true" } : undefined;
  }

  // The JSON schema of a type; anything goes where it is not known.
  function schema(type, depth = 0) {
    type = type.trim().replace(/^\|\s*/, "").replace(/^readonly\s+/, "");
    if (type === "" || depth > 20) return {};
    const members = parts(type, "|");
    if (members.length > 1) {
      const kept = members.filter((member) => !NOTHING.has(member));
      const or = members.includes("null") ? [{ type: "null" }] : [];
      const values = kept.map(literal);
      const whole = [];
      if (kept.length > 1 && values.every(Boolean)) {
        const all = values.map((one) => one.value);
        whole.push(all.every((value) => typeof value === "string") ? { type: "string", enum: all } : { enum: all });
      } else whole.push(...kept.map((member) => schema(member, depth + 1)));
      const any = [...whole, ...or];
      return any.length === 1 ? any[0] : { anyOf: any };
    }
    const value = literal(type);
    if (value) return typeof value.value === "string" ? { type: "string", enum: [value.value] } : { enum: [value.value] };
    if (SIMPLE[type]) return { type: SIMPLE[type] };
    if (type.startsWith("(") && closing(type, 0) === type.length - 1) return schema(type.slice(1, -1), depth + 1);
    if (type.endsWith("[]")) return { type: "array", items: schema(type.slice(0, -2), depth + 1) };
    if (type.startsWith("[") && type.endsWith("]")) return { type: "array" };
    const generic = /^([\w.]+)\s*<(.*)>$/s.exec(type);
    if (generic) {
      const of = parts(generic[2], ",");
      if (["Array", "ReadonlyArray", "Set"].includes(generic[1])) return { type: "array", items: schema(of[0], depth + 1) };
      if (generic[1] === "Record") return { type: "object", additionalProperties: schema(of[1] ?? "", depth + 1) };
      if (["Partial", "Readonly", "Required"].includes(generic[1])) return schema(of[0], depth + 1);
      return {};
    }
    if (type.startsWith("{") && closing(type, 0) === type.length - 1) return fields(type.slice(1, -1), depth);
    return named(type, depth);
  }

  // An object with these fields.
  function fields(text, depth) {
    const properties = {};
    const required = [];
    // A line ends a field as a semicolon does, unless the next one goes on with its type.
    const lines = text.replaceAll(/\r?\n\s*(?=[|&])/g, " ").replaceAll(/:\s*\n/g, ": ").replaceAll("\n", "\n;");
    for (const line of parts(lines, ";").flatMap((part) => parts(part, ","))) {
      const field = /^(?:readonly\s+)?(["']?)([\w$-]+)\1(\??)\s*:\s*(.+)$/s.exec(line);
      if (!field) continue;
      properties[field[2]] = schema(field[4], depth + 1);
      if (!field[3]) required.push(field[2]);
    }
    return Object.keys(properties).length ? { type: "object", properties, required } : { type: "object" };
  }

  // A type to which the file itself, or one of those that it imports, gives a name.
  function named(type, depth) {
    if (!/^\w+$/.test(type)) return {};
    for (const text of [source, ...(wanted.others ?? [])]) {
      const found = namedIn(text, type, depth);
      if (found) return found;
    }
    return {};
  }

  function namedIn(source, type, depth) {
    if (new RegExp(`\\benum\\s+${type}\\b`).test(source)) {
      const values = own(type) ?? {};
      // Numbers lead back to the names.
      const all = Object.keys(values).filter((key) => Number.isNaN(Number(key))).map((key) => values[key]);
      return all.length > 0 ? { enum: all } : {};
    }
    const alias = new RegExp(`^(?:export\\s+)?type\\s+${type}\\s*=`, "m").exec(source);
    if (alias) {
      const from = alias.index + alias[0].length;
      const text = parts(source.slice(from), ";")[0];
      // Without a semicolon it ends where the next declaration begins.
      return schema(text.split(/\n(?=\s*(?:export|const|let|var|function|async|type|interface|class|enum|import)\b)/)[0], depth + 1);
    }
    const face = new RegExp(`^(?:export\\s+)?interface\\s+${type}\\b[^{]*`, "m").exec(source);
    if (!face) return undefined;
    const from = face.index + face[0].length;
    return fields(source.slice(from + 1, closing(source, from)), depth);
  }

  // --- Functions ----------------------------------------------------------------------------------------------------------

  // What the comment before a function says of it, and of each of its parameters.
  function documented(at) {
    const before = source.slice(0, at).trimEnd();
    const begin = before.endsWith("*/") ? before.lastIndexOf("/*") : -1;
    const kept = [];
    const told = {};
    if (begin < 0 || !before.startsWith("/**", begin)) return { description: "", told };
    let name;
    for (const line of before.slice(begin + 3, -2).split("\n").map((line) => line.trim().replace(/^\*\s?/, ""))) {
      const parameter = /^@param\s+(?:\{([^}]*)\}\s*)?(?:\[([\w$]+)[^\]]*\]|([\w$]+)\??)\s*(?:-\s*)?(.*)$/.exec(line.trim());
      if (parameter) {
        name = parameter[2] ?? parameter[3];
        told[name] = { type: parameter[1] ?? "", mayLack: parameter[2] !== undefined, text: parameter[4].trim() };
      } else if (line.trim().startsWith("@")) name = null;
      else if (name) told[name].text = `${told[name].text} ${line.trim()}`.trim();
      else if (name === undefined) kept.push(line);
    }
    return { description: kept.join("\n").trim(), told };
  }

  function plain(value) {
    const known = literal(value);
    return known ? known.value : undefined;
  }

  function describe(found) {
    const { description, told } = documented(found.at);
    const properties = {};
    const required = [];
    for (const text of found.parameters) {
      const [left, initial] = [parts(text, "=")[0], parts(text, "=").slice(1).join("=")];
      const parameter = /^([\w$]+)\s*(\??)\s*(?::(.*))?$/s.exec(left);
      if (!parameter) {
        return { error: `the parameter \`${left}\` has no name by which it can be given: write one parameter for each value` };
      }
      const [, name, optional, written = ""] = parameter;
      const type = written.trim() === "" ? told[name]?.type ?? "" : written;
      const given = schema(type);
      const byDefault = plain(initial);
      if (type.trim() === "" && byDefault !== undefined) given.type = typeof byDefault;
      if (told[name]?.text) given.description = told[name].text;
      if (byDefault !== undefined) given.default = byDefault;
      const mayBeNothing = parts(type, "|").some((member) => NOTHING.has(member));
      if (!optional && !initial && !mayBeNothing && !told[name]?.mayLack) required.push(name);
      properties[name] = given;
    }
    return { description, parameters: { type: "object", properties, required, additionalProperties: false } };
  }

  // The functions that the file exports, without those that it keeps to itself.
  function* functions() {
    for (const head of source.matchAll(/^export\s+(?:default\s+)?(?:async\s+)?function\s*\*?\s*([\w$]+)\s*/gm)) {
      const name = head[1];
      let at = head.index + head[0].length;
      if (source[at] === "<") at = closing(source, at) + 1;
      // What only looks like one stands in a comment or a text.
      if (name.startsWith("_") || source[at] !== "(" || typeof own(name) !== "function") continue;
      const parameters = parts(source.slice(at + 1, closing(source, at)), ",").filter(Boolean);
      yield { name, at: head.index, parameters };
    }
  }

  if (wanted.function === undefined) {
    const tools = {};
    for (const found of functions()) tools[found.name] = describe(found);
    const none = "it exports no function, and those that it exports are its tools (`export function name(...)`)";
    answer(Object.keys(tools).length > 0 ? { tools } : { error: none });
    return;
  }

  // What a tool prints is no answer.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  console.log = console.info = console.debug = console.error;
  const found = [...functions()].find((one) => one.name === wanted.function);
  const values = found.parameters.map((text) => wanted.arguments[/^[\w$]+/.exec(text)[0]] ?? undefined);
  Promise.resolve().then(() => own(wanted.function)(...values)).then(
    (value) => ({ value: value ?? null }),
    (error) => ({ error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }),
  ).then(answer);

  function own(name) {
    try { return eval(name); } catch { return undefined; }
  }
})();
