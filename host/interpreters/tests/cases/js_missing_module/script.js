try { require("left-pad"); } catch (e) { console.log(e.code, e.message.includes("left-pad")); }
require("child_process");
