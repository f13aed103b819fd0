import { answer, isObject, pick, read, write } from "../calls.js";
import { PluginError } from "../errors.js";
import { Outcome } from "../index.js";

/** `run-node` of a plugin. */
export default (plugin) => ({
  run: (type, fields, inputs) =>
    answer(async () => {
      const node = pick(plugin.nodes, type, "node type");
      const returned = await node.run(
        read(node.fields, fields, "the text of the fields", "fields"),
        read(node.inputs, inputs, "the text of the inputs", "inputs"),
      );
      const { outputs, branch, metadata } = returned instanceof Outcome ? returned : new Outcome(returned);
      if (!isObject(outputs ?? {})) throw new PluginError(`the outputs of the node type \`${type}\` have to be an object`);
      if (node.branches.length > 0 ? !node.branches.includes(branch) : branch !== undefined) {
        const known = node.branches.join(", ") || "no branches";
        throw new PluginError(`the node type \`${type}\` left by the branch \`${branch}\`; it declares ${known}`);
      }
      const facts = Object.entries(metadata).map(([name, value]) => [name, String(value)]);
      return { outputs: write(outputs ?? {}, `the outputs of the node type \`${type}\``), branch, metadata: facts };
    }),
});
