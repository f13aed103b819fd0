console.log("{}");
