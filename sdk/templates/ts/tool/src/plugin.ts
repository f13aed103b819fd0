import { boolean, InvalidInput, optional, text, tool } from "hotcell-plugin";
import * as log from "hotcell-plugin/log";

export const tools = {
  count_words: tool({
    description: "Counts the words of a text.",
    readOnly: true,
    parameters: {
      text: text("The text to count in."),
      distinct: optional(boolean("Count words that occur several times only once."), false),
    },
    run({ text, distinct }) {
      const words = text.split(/\s+/).filter((word) => word !== "");
      if (words.length === 0) throw new InvalidInput("there are no words in `text`");
      log.debug(`${words.length} words`);
      return { words: distinct ? new Set(words).size : words.length };
    },
  }),
};
