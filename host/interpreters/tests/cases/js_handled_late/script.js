const p = Promise.reject(new Error("x"));
p.catch(() => console.log("handled"));
