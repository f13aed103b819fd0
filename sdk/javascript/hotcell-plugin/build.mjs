// Builds a plugin: bundles it once to ask what it offers, and once for the cell. `hotcell plugin build` copies this file
// into the project's build folder, so that the packages it imports are those of the project, and runs it with node; its
// argument is a JSON object.

import childProcess from "node:child_process";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { extname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as esbuild from "esbuild";

const order = JSON.parse(process.argv[2]);
const sdk = join(order.sdk, "hotcell-plugin");
const MAPPED = { sourcemap: "external", sourcesContent: false };
const INTERFACE = /^hotcell:plugin\/([a-z-]+)@/;
/** The module of the SDK that reaches files, which are no interface of the contract. */
const FILES = /^\.\/host-files\.js$/;
const CAPABILITIES = {
  kv: "kv = true",
  secrets: 'secret = [{ name = "NAME", why = "…" }]',
  llm: "llm = true",
  "other-tools": 'tool = ["NAME"]',
  ask: "ask = true",
  files: 'fs = [{ guest = "/data", access = "read", why = "…" }]',
};
const HOST_FUNCTIONS = [
  ...["log", "report", "get", "set", "keys", "placeholder", "complete", "call", "ask", "all", "delete"],
  ...["read", "write", "entries", "makeDirectory", "remove"],
];
/** What the global `fetch` is called while its use is looked for, alone and as a property of `globalThis`. */
const [FETCH, OWN_FETCH] = ["__hotcell_fetch__", "__hotcell_own_fetch__"];
const LOADERS = { ".js": "js", ".mjs": "js", ".cjs": "js", ".jsx": "jsx", ".ts": "ts", ".mts": "ts", ".cts": "ts", ".tsx": "tsx" };
const EXPORTS = { tool: "callTool", script: "runScript", connector: "connect", hooks: "hook", node: "runNode" };

/** Finds the SDK where the project has it, whether or not npm linked it. */
const sdkPlugin = {
  name: "sdk",
  async setup(build) {
    const { exports } = JSON.parse(await readFile(join(sdk, "package.json"), "utf8"));
    build.onResolve({ filter: /^hotcell-plugin(\/|$)/ }, ({ path }) => {
      const entry = `.${path.slice("hotcell-plugin".length)}`;
      const target = exports[entry]?.default ?? (entry.startsWith("./exports/") ? `${entry}.js` : undefined);
      if (target === undefined) return { errors: [{ text: `the SDK has no module \`${path}\`` }] };
      return { path: join(sdk, target), sideEffects: false };
    });
  },
};

/** Puts functions that throw in the place of the host's, and notes which interfaces are used. */
function withoutHost(used) {
  const contents =
    'const none = () => { throw new Error("the host\'s functions are there in a cell, not while a plugin is built: ' +
    'call them inside `run`, not at the top of a module"); };\n' +
    HOST_FUNCTIONS.map((name) => `export { none as ${name} };\n`).join("");
  return {
    name: "without-host",
    setup(build) {
      build.onResolve({ filter: /^hotcell:/ }, ({ path }) => {
        used.add(INTERFACE.exec(path)?.[1] ?? path);
        return { path, namespace: "without-host" };
      });
      build.onResolve({ filter: FILES }, () => {
        used.add("files");
        return { path: "files", namespace: "without-host" };
      });
      build.onLoad({ filter: /.*/, namespace: "without-host" }, () => ({ contents, loader: "js" }));
    },
  };
}

/** Has calls of the host go to the program that plays a case. */
function withHostOf(native, used) {
  return {
    name: "native-host",
    setup(build) {
      build.onResolve({ filter: /^hotcell:/ }, ({ path }) => {
        used.add(INTERFACE.exec(path)?.[1] ?? path);
        return { path, namespace: "native-host" };
      });
      build.onResolve({ filter: FILES }, () => {
        used.add("files");
        return { path: "files", namespace: "native-host" };
      });
      build.onLoad({ filter: /.*/, namespace: "native-host" }, ({ path }) => {
        const name = JSON.stringify(INTERFACE.exec(path)?.[1] ?? path);
        const contents =
          `import { functions } from ${JSON.stringify(native)};\nconst of = functions[${name}] ?? {};\n` +
          HOST_FUNCTIONS.map((one) => `const ${one}_ = of.${one};\nexport { ${one}_ as ${one} };\n`).join("");
        return { contents, loader: "js", resolveDir: order.work };
      });
    },
  };
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The numbers of a segment of a source map: each in groups of five bits, lowest first, with the sign at the end. */
function decode(segment) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const digit of segment) {
    const bits = DIGITS.indexOf(digit);
    value += (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}

/** The places of a bundle that come from the author's files: by line, `[column, source, line, column]`. */
function placesOf(mappings, authored) {
  const lines = {};
  const at = { source: 0, line: 0, column: 0 };
  for (const [number, segments] of mappings.split(";").entries()) {
    let generated = 0;
    for (const segment of segments.split(",").filter((segment) => segment !== "")) {
      const [step, source = 0, down = 0, across = 0] = decode(segment);
      generated += step;
      at.source += source;
      at.line += down;
      at.column += across;
      if (authored[at.source]) (lines[number + 1] ??= []).push([generated, at.source, at.line + 1, at.column + 1]);
    }
  }
  return lines;
}

/** The path of a file in the project. */
const inProject = (path) => relative(process.cwd(), path).replaceAll("\\", "/");

/** Whether the file at a path in the project is the author's own. */
function isAuthored(file) {
  const others = [`${inProject(order.sdk)}/`, `${inProject(order.work)}/`, "../"];
  return !others.some((folder) => file.startsWith(folder)) && !file.includes("node_modules/");
}

/** Puts at the end of a bundle where its lines come from, which the SDK reads when something fails. */
async function addPlaces(outfile) {
  const map = JSON.parse(await readFile(`${outfile}.map`, "utf8"));
  const sources = map.sources.map((path) => inProject(resolve(order.work, path)));
  const authored = sources.map((file, index) => isAuthored(file) && !/^[a-z-]+:/.test(map.sources[index]));
  const places = { sources, lines: placesOf(map.mappings, authored) };
  await appendFile(outfile, `\nglobalThis.__hotcellPlaces = ${JSON.stringify(places)};\n`);
}

async function bundle(contents, outfile, options) {
  const { metafile } = await esbuild.build({
    metafile: true,
    stdin: { contents, resolveDir: order.work, sourcefile: "entry.js" },
    bundle: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2022",
    logLevel: "silent",
    outfile,
    ...options,
  });
  return Object.keys(metafile.inputs);
}

/** What an author is told as it stands: where it was noticed is of no interest. */
function told(text) {
  return Object.assign(new Error(text), { errors: [{ text }] });
}

/** An error of the author's code, with the lines of that code: node has them from the source map. */
function withoutOurs(error) {
  const ours = (line) => /build\.mjs|\bnode:/.test(line);
  return error.stack?.split("\n").filter((line) => !ours(line)).join("\n") ?? String(error);
}

/** An error that names the line to add for what the code uses. */
function notAsked(what, line) {
  return told(`the code uses ${what}; ask for it with \`${line}\` under \`[capabilities]\` in plugin.toml`);
}

/** The code of an author's file, in which the global `fetch` has a name of its own; nothing where the file is not code. */
async function withFetchRenamed(file) {
  const loader = LOADERS[extname(file)];
  if (loader === undefined || !isAuthored(file) || file.endsWith("entry.js")) return "";
  try {
    const define = { fetch: FETCH, "globalThis.fetch": OWN_FETCH };
    const { code } = await esbuild.transform(await readFile(file, "utf8"), { loader, define, logLevel: "silent" });
    return code.replaceAll(`typeof ${FETCH}`, "");
  } catch {
    return "";
  }
}

/**
 * Refuses a use of the global `fetch` where no server is asked for. No import shows it, because it is there for every plugin. esbuild
 * knows what refers to it and what is a function, a property, a comment or a text of that name. Packages are left out, because many use
 * it only where it is there, and so is code that sets it.
 */
async function checkFetch(files) {
  if (order.http !== false) return;
  const code = (await Promise.all(files.map(withFetchRenamed))).join("\n");
  if (code.includes(FETCH) && !code.includes(OWN_FETCH)) throw notAsked("`fetch`", 'http = ["https://api.example.org"]');
}

function checkImports(used) {
  for (const name of used) {
    if (order.imports.includes(name)) continue;
    const line = CAPABILITIES[name];
    if (line === undefined) throw told(`\`${name}\` is imported, which a plugin of this kind does not have`);
    throw notAsked(`the interface \`${name}\``, line);
  }
}

/** The bundle that plays a case without a cell. It starts when all of it is there, the table at its end included. */
async function buildNative() {
  const native = join(sdk, "native.js");
  const used = new Set();
  const kinds = order.kinds.map((kind, index) => [
    `import export${index} from "hotcell-plugin/exports/${kind}";\n`,
    `${kind}: export${index}(plugin), `,
  ]);
  const contents =
    `import * as plugin from ${JSON.stringify(order.source)};\nimport { start } from ${JSON.stringify(native)};\n` +
    `${kinds.map(([line]) => line).join("")}setTimeout(() => start({ ${kinds.map(([, entry]) => entry).join("")}}));\n`;
  const plugins = [sdkPlugin, withHostOf(native, used)];
  const read = await bundle(contents, order.native, { plugins, external: ["node:*"], ...MAPPED });
  checkImports(used);
  await checkFetch(read);
  await addPlaces(order.native);
}

/** The name by which `componentize-js` asks for a snapshot. */
const SNAPSHOT = "hotcell-snapshot";

/** Has `componentize-js` call our `snapshot` where it would start a program, which would not give the same twice. */
async function snapshotHere() {
  const { snapshot } = await import(pathToFileURL(join(sdk, "snapshot.mjs")).href);
  const { spawnSync } = childProcess;
  childProcess.spawnSync = (program, given, options) =>
    program === SNAPSHOT ? snapshot(given, options) : spawnSync(program, given, options);
  syncBuiltinESMExports();
}

async function buildComponent() {
  const source = JSON.stringify(order.source);
  const used = new Set();
  const describing = join(order.work, "describe.mjs");
  const described = await bundle(
    `import * as plugin from ${source};\nimport { describe } from "hotcell-plugin";\nexport default () => describe(plugin);\n`,
    describing,
    { plugins: [sdkPlugin, withoutHost(used)], sourcemap: "inline" },
  );
  checkImports(used);
  await checkFetch(described);
  const { default: describe } = await import(pathToFileURL(describing).href);
  await writeFile(order.described, JSON.stringify(describe()));

  const entry = order.kinds.map(
    (kind, index) =>
      `import export${index} from "hotcell-plugin/exports/${kind}";\nexport const ${EXPORTS[kind]} = export${index}(plugin);\n`,
  );
  const bundled = join(order.work, "plugin.js");
  const read = await bundle(`import * as plugin from ${source};\n${entry.join("")}`, bundled, {
    plugins: [sdkPlugin],
    external: ["hotcell:*", "wasi:*"],
    ...MAPPED,
  });
  await addPlaces(bundled);
  await snapshotHere();
  const { componentize } = await import("@bytecodealliance/componentize-js");
  const { component } = await componentize({
    wizerBin: SNAPSHOT,
    sourcePath: bundled,
    witPath: order.wit,
    worldName: order.world,
    disableFeatures: order.http ? ["fetch-event"] : ["http", "fetch-event"],
  });
  await writeFile(order.component, component);
  const files = read.filter((path) => !path.startsWith("<") && !path.endsWith("entry.js")).map((path) => resolve(path));
  if (order.read) await writeFile(order.read, JSON.stringify(files));
}

try {
  await (order.native ? buildNative() : buildComponent());
} catch (error) {
  const problems = error.errors?.map(({ text, location }) =>
    location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text,
  );
  console.error(problems?.join("\n") ?? withoutOurs(error));
  process.exitCode = 1;
}
