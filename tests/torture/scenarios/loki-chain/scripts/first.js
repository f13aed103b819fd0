const reply = await fetch("{WORLD}/first");
if (!reply.ok) throw new Error(`status ${reply.status}`);
const { value } = await reply.json();
console.log(JSON.stringify({ first: value, _next: "second" }));
