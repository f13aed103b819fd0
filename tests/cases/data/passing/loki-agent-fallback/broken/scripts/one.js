throw new Error("no ink");
