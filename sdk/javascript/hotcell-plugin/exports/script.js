import { answer, isObject, write } from "../calls.js";
import { PluginError } from "../errors.js";
import * as state from "../state.js";

/** `run-script` of a plugin. */
export default (plugin) => ({
  run: () =>
    answer(async () => {
      if (typeof plugin.script !== "function") throw new PluginError("the plugin exports no function `script`");
      // The whole state is fetched only by a script that takes it.
      const result = (await plugin.script(...(plugin.script.length > 0 ? [state.all()] : []))) ?? {};
      if (!isObject(result)) throw new PluginError("the script returned something other than an object");
      return write(result, "the result of the script");
    }),
});
