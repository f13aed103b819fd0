// Judges one message by rules that a person can read: what it is about, how urgent, and until when.

enum Urgency {
  Now = 1,
  Today = 2,
  ThisWeek = 3,
  Whenever = 4,
}

interface Message {
  id: string;
  reply_to: string | null;
  from: string;
  subject: string;
  date: string;
  body: string;
}

interface Rule {
  topic: string;
  words: RegExp;
  urgency: Urgency;
}

const rules: readonly Rule[] = [
  { topic: "outage", words: /\b(outage|502|503|bad gateway|is down|payments? fails?)\b/i, urgency: Urgency.Now },
  { topic: "security", words: /\b(breach|signed? in|sign-in|password|phishing|stolen)\b/i, urgency: Urgency.Now },
  { topic: "billing", words: /\b(invoices?|refunds?|charged|debits?|vat)\b/i, urgency: Urgency.ThisWeek },
  { topic: "question", words: /\b(how do i|is there a way|where (can|do) i)\b/i, urgency: Urgency.ThisWeek },
  { topic: "wish", words: /\b(wish|would be (lovely|great|nice)|feature request)\b/i, urgency: Urgency.Whenever },
  { topic: "praise", words: /\b(thank you!|is wonderful|great job)/i, urgency: Urgency.Whenever },
];

const pressure = /\b(urgent|third (time|mail)|by tomorrow|any hour|cancel our contract|within \d+ hours)\b/i;
const patience = /\b(no hurry|whenever you have)\b/i;

function judge(message: Message) {
  const text = `${message.subject}\n${message.body}`;
  const rule = rules.find(({ words }) => words.test(text));
  let urgency = rule?.urgency ?? Urgency.Whenever;
  const reasons: string[] = [];
  const pressed = pressure.exec(text)?.[0];
  if (pressed) {
    reasons.push(`says "${pressed.toLowerCase()}"`);
    if (urgency > Urgency.Today) urgency = Urgency.Today;
  }
  if (patience.test(text)) {
    reasons.push("is in no hurry");
    urgency = Urgency.Whenever;
  }
  return {
    id: message.id,
    reply_to: message.reply_to,
    from: message.from,
    subject: message.subject,
    date: message.date,
    topic: rule?.topic ?? "other",
    urgency,
    reasons,
    excerpt: message.body.replace(/\s+/g, " ").slice(0, 160),
  } satisfies Record<string, unknown>;
}

const state = load() as { message: Message };
console.log(JSON.stringify({ ticket: judge(state.message) }));

function load(): unknown {
  const file = process.env.GRAPH_STATE_FILE;
  return JSON.parse(file ? require("fs").readFileSync(file, "utf8") : process.env.GRAPH_STATE ?? "{}");
}
