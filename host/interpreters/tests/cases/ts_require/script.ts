const fs = require("fs");
import path = require("path");
console.log(typeof fs.readFileSync, path.sep);
