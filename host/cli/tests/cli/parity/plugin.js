// Everything that a plugin may use, one tool each.

import { text, tool } from "hotcell-plugin";
import { ask as question } from "hotcell-plugin/ask";
import * as config from "hotcell-plugin/config";
import * as directory from "hotcell-plugin/files";
import * as store from "hotcell-plugin/kv";
import * as model from "hotcell-plugin/llm";
import * as log from "hotcell-plugin/log";
import * as progress from "hotcell-plugin/progress";
import { placeholder } from "hotcell-plugin/secrets";
import * as others from "hotcell-plugin/tools";

export const tools = {
  settings: tool({
    run() {
      log.info("looked up");
      progress.report(1, 2, "half");
      return config.require("place");
    },
  }),
  files: tool({
    parameters: { path: text() },
    run({ path }) {
      directory.write("/data/copy.txt", directory.readText(path));
      const copied = directory.readText("/data/copy.txt");
      const names = directory.entries("/data");
      directory.remove("/data/copy.txt");
      return { copied, names };
    },
  }),
  kv: tool({
    run() {
      store.set("a", "1");
      store.remove("gone");
      return { a: store.getText("a"), gone: store.getText("gone") ?? null, keys: store.keys() };
    },
  }),
  http: tool({
    async run() {
      const response = await fetch("https://api.example.org/echo", { method: "POST", body: "ping" });
      return response.text();
    },
  }),
  secrets: tool({ run: () => placeholder("KEY") !== "" }),
  llm: tool({ run: () => model.complete("hi") }),
  tools: tool({ run: () => others.call("other", { x: 1 }) }),
  ask: tool({ run: () => question("Which way?") }),
  clock: tool({ run: () => Math.floor(Date.now() / 1000) }),
  random: tool({
    run: () => {
      const draw = () => crypto.getRandomValues(new Uint8Array(16)).join();
      return draw() !== draw();
    },
  }),
};
