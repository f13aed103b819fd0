(async () => { try { await null; process.exit(6); } catch { console.log("caught"); } })();
setTimeout(() => console.log("not reached"), 5);
