#!/usr/bin/env node
const path = require("path");
console.log(JSON.stringify([typeof module, typeof exports, this === module.exports, path.basename(__filename), __dirname, require.main === module, process.argv.length]));
return;
