// Builds a plugin: bundles it once to ask what it offers, and once for the cell. `hotcell plugin build` copies this file
// into the project's build folder, so that the packages it imports are those of the project, and runs it with node; its
// argument is a JSON object.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { componentize } from "@bytecodealliance/componentize-js";
import * as esbuild from "esbuild";

const order = JSON.parse(process.argv[2]);
const sdk = join(order.sdk, "hotcell-plugin");
const INTERFACE = /^hotcell:plugin\/([a-z-]+)@/;
const CAPABILITIES = {
  kv: "kv = true",
  secrets: 'secret = [{ name = "NAME", why = "…" }]',
  llm: "llm = true",
  "other-tools": 'tool = ["NAME"]',
  ask: "ask = true",
};
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
  const names = ["log", "report", "get", "set", "keys", "placeholder", "complete", "call", "ask", "all"];
  const contents =
    'const none = () => { throw new Error("the host\'s functions are there in a cell, not while a plugin is built: ' +
    'call them inside `run`, not at the top of a module"); };\n' +
    names.map((name) => `export { none as ${name} };\n`).join("") +
    "export { none as delete };\n";
  return {
    name: "without-host",
    setup(build) {
      build.onResolve({ filter: /^hotcell:/ }, ({ path }) => {
        used.add(path);
        return { path, namespace: "without-host" };
      });
      build.onLoad({ filter: /.*/, namespace: "without-host" }, () => ({ contents, loader: "js" }));
    },
  };
}

async function bundle(contents, outfile, options) {
  await esbuild.build({
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
}

function checkImports(used) {
  for (const path of used) {
    const name = INTERFACE.exec(path)?.[1];
    if (order.imports.includes(name)) continue;
    const line = CAPABILITIES[name];
    throw new Error(
      line === undefined
        ? `\`${path}\` is imported, which a plugin of this kind does not have`
        : `the code uses the interface \`${name}\`; ask for it with \`${line}\` under \`[capabilities]\` in plugin.toml`,
    );
  }
}

async function main() {
  const source = JSON.stringify(order.source);
  const used = new Set();
  const describing = join(order.work, "describe.mjs");
  await bundle(
    `import * as plugin from ${source};\nimport { describe } from "hotcell-plugin";\nexport default () => describe(plugin);\n`,
    describing,
    { plugins: [sdkPlugin, withoutHost(used)] },
  );
  checkImports(used);
  const { default: describe } = await import(pathToFileURL(describing).href);
  await writeFile(order.described, JSON.stringify(describe()));

  const entry = order.kinds.map(
    (kind, index) =>
      `import export${index} from "hotcell-plugin/exports/${kind}";\nexport const ${EXPORTS[kind]} = export${index}(plugin);\n`,
  );
  const bundled = join(order.work, "plugin.js");
  await bundle(`import * as plugin from ${source};\n${entry.join("")}`, bundled, {
    plugins: [sdkPlugin],
    external: ["hotcell:*"],
  });
  const { component } = await componentize({
    sourcePath: bundled,
    witPath: order.wit,
    worldName: order.world,
    disableFeatures: order.http ? ["fetch-event"] : ["http", "fetch-event"],
  });
  await writeFile(order.component, component);
}

try {
  await main();
} catch (error) {
  const problems = error.errors?.map(({ text, location }) =>
    location ? `${location.file}, line ${location.line}: ${text}` : text,
  );
  console.error(problems?.join("\n") ?? error.stack ?? String(error));
  process.exitCode = 1;
}
