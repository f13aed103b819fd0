import { answer, pick, read, write } from "../calls.js";

/** `call-tool` of a plugin. */
export default (plugin) => ({
  call: (name, args) =>
    answer(async () => {
      const tool = pick(plugin.tools, name, "tool");
      return write(await tool.run(read(tool.schema, args, "the text of the arguments")), `the result of the tool \`${name}\``);
    }),
});
