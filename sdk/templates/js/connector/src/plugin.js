import { accepted, connect, InvalidInput, text, Unavailable } from "hotcell-plugin";

export const connector = connect({
  description: "Posts messages to a server.",
  modes: ["sync", "callback"],
  config: { url: text("Where to post to.") },
  async send({ input, config, callback }) {
    const response = await fetch(config.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...input, callback }),
    });
    if (!response.ok) throw new Unavailable(`${config.url} answered with status ${response.status}`);
    return callback === undefined ? await response.json() : accepted();
  },
  receive(_request, body) {
    if (body?.answer === undefined) throw new InvalidInput("the server sent no `answer`");
    return body.answer;
  },
});
