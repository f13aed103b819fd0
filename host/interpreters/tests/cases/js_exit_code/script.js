console.log("{}");
try { process.exit(3); } finally { console.log("not reached"); }
