// Reads every message in /mail, the folder that hotcell.toml grants.
const { readdirSync, readFileSync } = require("fs");

const messages = readdirSync("/mail")
  .filter((name) => name.endsWith(".eml"))
  .sort()
  .map((name) => parse(name, readFileSync(`/mail/${name}`, "utf8")));

console.log(JSON.stringify({ messages }));

function parse(file, text) {
  const [head, ...body] = text.replace(/\r\n/g, "\n").split("\n\n");
  const headers = {};
  for (const line of head.replace(/\n[ \t]+/g, " ").split("\n")) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = decodeWords(line.slice(colon + 1).trim());
  }
  const address = /[^\s<>"]+@[^\s<>"]+/.exec(headers.from ?? "")?.[0] ?? "unknown@unknown";
  return {
    id: headers["message-id"] ?? file,
    reply_to: headers["in-reply-to"] ?? null,
    file,
    from: address,
    domain: address.split("@")[1],
    subject: headers.subject ?? "(no subject)",
    date: new Date(headers.date ?? 0).toISOString(),
    body: body.join("\n\n").trim(),
  };
}

// RFC 2047: =?UTF-8?B?...?= and =?UTF-8?Q?...?=
function decodeWords(text) {
  return text.replace(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, form, data) => {
    const bytes =
      form.toLowerCase() === "b"
        ? Buffer.from(data, "base64")
        : Buffer.from(data.replace(/_/g, " ").replace(/=([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16))), "latin1");
    return bytes.toString("utf8");
  });
}
