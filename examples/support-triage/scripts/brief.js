// The briefing without a model: what the numbers say, in sentences.
const file = process.env.GRAPH_STATE_FILE;
const state = JSON.parse(file ? require("fs").readFileSync(file, "utf8") : process.env.GRAPH_STATE);

const now = state.ranked.filter((ticket) => ticket.urgency === 1);
const today = state.ranked.filter((ticket) => ticket.urgency === 2);
const sentences = [
  now.length === 0 ? "Nothing is on fire." : `First: ${now.map(describe).join("; ")}.`,
  today.length === 0 ? "" : `Also today: ${today.map(describe).join("; ")}.`,
  loudest(),
];
console.log(JSON.stringify({ briefing: sentences.filter(Boolean).join("\n") }));

function describe(ticket) {
  const why = ticket.reasons.length > 0 ? ` (${ticket.reasons.join(", ")})` : "";
  return `${ticket.topic}, "${ticket.subject}" from ${ticket.from}${why}`;
}

function loudest() {
  const [domain, count] = Object.entries(state.by_sender).sort((a, b) => b[1] - a[1])[0] ?? [];
  return count > 1 ? `${domain} wrote ${count} times.` : "";
}
