import { answer, parse, write } from "../calls.js";
import { PluginError } from "../errors.js";

/** `hook` of a plugin. */
export default (plugin) => ({
  on: (point, event) =>
    answer(async () => {
      const found = Object.hasOwn(plugin.hooks ?? {}, point) ? plugin.hooks[point] : undefined;
      const result = await found?.run(parse(event, "the event"));
      switch (result?.verdict ?? (result === undefined || result === null ? "proceed" : "unknown")) {
        case "proceed":
          return { tag: "proceed" };
        case "change":
          return { tag: "change", val: write(result.event, `the event that the hook for \`${point}\` changed`) };
        case "refuse":
          return { tag: "refuse", val: { message: String(result.reason), metadata: [] } };
        default:
          throw new PluginError(
            `the hook for \`${point}\` has to return \`proceed()\`, \`change(event)\`, \`refuse(reason)\` or nothing`,
          );
      }
    }),
});
