import { answer, parse, read, write } from "../calls.js";
import { accepted } from "../index.js";

function request(plugin, given) {
  return {
    input: read({ type: "object" }, given.input, "the text of the input", "input"),
    config: read(plugin.connector.config ?? {}, given.config, "the text of the configuration", "config"),
    callback: given.callback ?? undefined,
    metadata: Object.fromEntries(given.metadata),
  };
}

/** `connect` of a plugin. */
export default (plugin) => ({
  send: (given) =>
    answer(async () => {
      const result = await plugin.connector.send(request(plugin, given));
      return result === accepted() ? { tag: "accepted" } : { tag: "done", val: write(result, "the connector's answer") };
    }),
  receive: (given, body) =>
    answer(async () => {
      const value = parse(body, "the body of the callback");
      return write(await plugin.connector.receive(request(plugin, given), value), "the connector's answer");
    }),
});
