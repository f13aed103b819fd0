const b = Buffer.from("héllo €", "utf8");
console.log(b.length, b.toString("hex"), b.toString("base64"), Buffer.from(b.toString("base64url"), "base64url").equals(b));
console.log(btoa("hi there"), atob("aGkgdGhlcmU="), new TextDecoder().decode(new TextEncoder().encode("😀")));
const c = Buffer.alloc(8); c.writeUInt32BE(0xdeadbeef, 0); c.writeInt16LE(-2, 4);
console.log(c.toString("hex"), c.readUInt32BE(0) === 0xdeadbeef, c.readInt16LE(4), Buffer.concat([Buffer.from("a"), Buffer.from("b")]).toString(), JSON.stringify(Buffer.from("a")));
console.log(require("crypto").createHash("sha256").update("abc").digest("hex"));
console.log(require("crypto").createHmac("md5", "key").update("abc").digest("base64"));
