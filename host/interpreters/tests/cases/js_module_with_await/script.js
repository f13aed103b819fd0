import fs, { existsSync } from "node:fs";
import path from "path";
import * as os from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
const slept = await sleep(1, "slept");
export const unused = 1;
export default unused;
console.log(JSON.stringify({ slept, join: path.join("a", "..", "b", "c.txt"), eol: os.EOL, same: fs.existsSync === existsSync, meta: import.meta.url }));
