console.log(JSON.stringify(require("fs").readFileSync(0, "utf8")));
process.stdin.on("data", () => console.log("data")).on("end", () => console.log("end"));
