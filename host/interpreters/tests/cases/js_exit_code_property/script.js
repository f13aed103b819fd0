process.on("exit", (code) => console.error("left with", code));
process.exitCode = 4;
