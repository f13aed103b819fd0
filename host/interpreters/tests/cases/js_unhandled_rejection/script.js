Promise.reject(new Error("nobody listens"));
setTimeout(() => console.log("late"), 1);
