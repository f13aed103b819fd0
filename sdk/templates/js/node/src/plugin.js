import { map, node, optional, outcome, text } from "hotcell-plugin";

export const nodes = {
  lookup: node({
    description: "Looks a key up in a table.",
    fields: { table: map(text(), "The values by their keys.") },
    inputs: { key: text("The key to look up.") },
    outputs: { value: optional(text("The value that was found.")) },
    branches: ["found", "missing"],
    run({ table }, { key }) {
      return Object.hasOwn(table, key) ? outcome({ value: table[key] }, "found") : outcome({}, "missing");
    },
  }),
};
