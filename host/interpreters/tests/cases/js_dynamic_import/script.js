import("node:path").then((m) => console.log(m.default.basename("/x/y.txt"), m.extname("z.md")));
