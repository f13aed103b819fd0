// Joins messages of one thread into one ticket, sorts by urgency, and lays the result out as a table.

interface Ticket {
  id: string;
  reply_to: string | null;
  from: string;
  subject: string;
  date: string;
  topic: string;
  urgency: number;
  reasons: string[];
  excerpt: string;
}

interface State {
  tickets: Ticket[];
  by_sender: Record<string, number>;
  initial_prompt?: string;
}

const state: State = load();
const focus = (state.initial_prompt ?? "").trim();

const threads = new Map<string, Ticket[]>();
for (const ticket of [...state.tickets].sort((a, b) => a.date.localeCompare(b.date))) {
  const first = ticket.reply_to !== null && threads.has(ticket.reply_to) ? ticket.reply_to : ticket.id;
  threads.set(first, [...(threads.get(first) ?? []), ticket]);
}

const ranked = [...threads.values()]
  .map((thread) => {
    const urgency = Math.min(...thread.map((ticket) => ticket.urgency));
    const reasons = [...new Set(thread.flatMap((ticket) => ticket.reasons))];
    return { ...thread[0]!, urgency, reasons, messages: thread.length };
  })
  .filter((ticket) => matches(`${ticket.topic} ${ticket.subject} ${ticket.excerpt}`))
  .sort((a, b) => a.urgency - b.urgency || a.date.localeCompare(b.date));

const rows = ranked.map((ticket) => {
  const age = ticket.messages > 1 ? `${ticket.messages} messages` : "";
  return [`P${ticket.urgency}`, ticket.topic, ticket.subject, ticket.from, [age, ...ticket.reasons].filter(Boolean).join(", ")];
});

console.log(
  JSON.stringify({
    ranked,
    focus: focus || "everything",
    table: layOut(rows),
    totals: {
      messages: state.tickets.length,
      tickets: ranked.length,
      today: ranked.filter((ticket) => ticket.urgency <= 2).length,
    },
  }),
);

/** Whether a text has one of the words that were asked for; every text if none was. */
function matches(text: string): boolean {
  const words = focus.toLowerCase().split(/\W+/).filter(Boolean);
  return words.length === 0 || words.some((word) => text.toLowerCase().includes(word));
}

function layOut(rows: string[][]): string {
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => row[column]!.length)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd()).join("\n");
}

function load<T>(): T {
  const file = process.env.GRAPH_STATE_FILE;
  return JSON.parse(file ? require("fs").readFileSync(file, "utf8") : process.env.GRAPH_STATE ?? "{}") as T;
}
