// `path`, `fs` and `fs/promises`. The files are what WASI preopens: the state file and granted directories.
(function (host, internals) {
  "use strict";

  const { coded, systemError, encodingOf } = internals;

  function text(value, name) {
    if (typeof value !== "string") throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be of type string. Received ${internals.inspect(value)}`);
    return value;
  }
  function normalize(path) {
    text(path, "path");
    const rooted = path.startsWith("/");
    const kept = [];
    for (const part of path.split("/")) {
      if (part === "" || part === ".") continue;
      if (part !== "..") kept.push(part);
      else if (kept.length > 0 && kept[kept.length - 1] !== "..") kept.pop();
      else if (!rooted) kept.push("..");
    }
    let out = kept.join("/");
    if (out !== "" && path.endsWith("/")) out += "/";
    return rooted ? "/" + out : out === "" ? (path.endsWith("/") && path !== "" ? "./" : ".") : out;
  }
  function trimmed(path) {
    let end = path.length;
    while (end > 1 && path[end - 1] === "/") end -= 1;
    return end === path.length ? path : path.slice(0, end);
  }
  const path = {
    sep: "/",
    delimiter: ":",
    normalize,
    join(...parts) {
      const joined = parts.filter((part) => text(part, "path") !== "").join("/");
      return joined === "" ? "." : normalize(joined);
    },
    resolve(...parts) {
      let whole = "";
      for (const part of ["/", ...parts]) if (text(part, "paths") !== "") whole = part.startsWith("/") ? part : `${whole}/${part}`;
      return trimmed(normalize(whole));
    },
    isAbsolute(value) { return text(value, "path").startsWith("/"); },
    dirname(value) {
      const clean = trimmed(text(value, "path"));
      const at = clean.lastIndexOf("/");
      return at < 0 ? "." : at === 0 ? "/" : trimmed(clean.slice(0, at));
    },
    basename(value, suffix) {
      const name = trimmed(text(value, "path")).split("/").pop();
      return suffix !== undefined && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
    },
    extname(value) {
      const name = path.basename(value);
      const at = name.lastIndexOf(".");
      return at <= 0 ? "" : name.slice(at);
    },
    relative(from, to) {
      const start = path.resolve(from).split("/").filter(Boolean);
      const goal = path.resolve(to).split("/").filter(Boolean);
      let same = 0;
      while (same < start.length && same < goal.length && start[same] === goal[same]) same += 1;
      return [...start.slice(same).map(() => ".."), ...goal.slice(same)].join("/");
    },
    parse(value) {
      const base = path.basename(value);
      const ext = path.extname(base);
      const dir = value.includes("/") ? path.dirname(value) : "";
      return { root: value.startsWith("/") ? "/" : "", dir, base, ext, name: ext === "" ? base : base.slice(0, -ext.length) };
    },
    format(parts) {
      const base = parts.base ?? `${parts.name ?? ""}${parts.ext ?? ""}`;
      const dir = parts.dir ?? parts.root;
      return !dir ? base : dir === parts.root ? dir + base : `${dir}/${base}`;
    },
    toNamespacedPath: (value) => value,
  };
  path.posix = path;

  function pathOf(value) {
    if (typeof value === "string") return value;
    if (value instanceof internals.web.URL) {
      if (value.protocol !== "file:") throw coded(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
      return decodeURIComponent(value.pathname);
    }
    if (value instanceof Uint8Array) return host.decode(value, "utf8");
    throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "path" argument must be of type string or an instance of Buffer or URL. Received ${internals.inspect(value)}`);
  }
  // A native call answers `{ error: code }` instead of throwing, so that the exception has Node's shape.
  function call(name, syscall, target, ...values) {
    const answer = host[name](target, ...values);
    if (answer !== null && typeof answer === "object" && typeof answer.error === "string") throw systemError(answer.error, syscall, target);
    return answer;
  }
  function encodingIn(options) { return typeof options === "string" ? options : options?.encoding ?? undefined; }
  function bytesIn(data, options) {
    if (typeof data === "string") return new Uint8Array(host.encode(data, encodingOf(encodingIn(options))));
    if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) return internals.bytesOf(data);
    throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${internals.inspect(data)}`);
  }

  class Stats {
    constructor(found) { this.#kind = found.kind; this.size = found.size; this.mtimeMs = found.modified; this.mode = found.kind === "directory" ? 0o40755 : 0o100644; this.mtime = new Date(found.modified); }
    #kind;
    isFile() { return this.#kind === "file"; }
    isDirectory() { return this.#kind === "directory"; }
    isSymbolicLink() { return this.#kind === "link"; }
  }
  class Dirent {
    #kind;
    constructor(name, parent, kind) { this.name = name; this.parentPath = parent; this.path = parent; this.#kind = kind; }
    isFile() { return this.#kind === "file"; }
    isDirectory() { return this.#kind === "directory"; }
    isSymbolicLink() { return this.#kind === "link"; }
  }

  const sync = {
    readFile(target, options) {
      if (target === 0) return encodingIn(options) ? "" : internals.Buffer.alloc(0);
      const encoding = encodingIn(options);
      const found = call("readFile", "open", pathOf(target));
      const buffer = new internals.Buffer(found);
      return encoding === undefined || encoding === "buffer" ? buffer : buffer.toString(encoding);
    },
    writeFile(target, data, options) {
      if (target === 1 || target === 2) return void host.write(target, bytesIn(data, options));
      call("writeFile", "open", pathOf(target), bytesIn(data, options), options?.flag === "a" ? "append" : options?.flag === "wx" ? "new" : "replace");
    },
    appendFile(target, data, options) {
      if (target === 1 || target === 2) return void host.write(target, bytesIn(data, options));
      call("writeFile", "open", pathOf(target), bytesIn(data, options), "append");
    },
    stat(target, options) {
      if (options?.throwIfNoEntry === false && !fs.existsSync(target)) return undefined;
      return new Stats(call("stat", "stat", pathOf(target), true));
    },
    lstat(target) { return new Stats(call("stat", "lstat", pathOf(target), false)); },
    access(target) { call("stat", "access", pathOf(target), true); },
    readdir(target, options) {
      const directory = pathOf(target);
      const found = call("readDirectory", "scandir", directory).sort(([a], [b]) => a < b ? -1 : 1);
      return found.map(([name, kind]) => options?.withFileTypes ? new Dirent(name, directory, kind) : name);
    },
    mkdir(target, options) { call("makeDirectory", "mkdir", pathOf(target), Boolean(options?.recursive)); },
    rm(target, options) {
      const name = pathOf(target);
      if (options?.force && !fs.existsSync(name)) return;
      call("remove", "rm", name, options?.recursive ? "tree" : "file");
    },
    unlink(target) { call("remove", "unlink", pathOf(target), "file"); },
    rmdir(target) { call("remove", "rmdir", pathOf(target), "directory"); },
    rename(from, to) { call("rename", "rename", pathOf(from), pathOf(to)); },
    copyFile(from, to) { sync.writeFile(to, sync.readFile(from)); },
    mkdtemp(prefix) {
      const name = `${prefix}${host.decode(new Uint8Array(host.randomBytes(3)), "hex")}`;
      sync.mkdir(name);
      return name;
    },
    realpath(target) { call("stat", "realpath", pathOf(target), true); return path.resolve(pathOf(target)); },
  };

  const fs = {
    constants: { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4 },
    Stats,
    Dirent,
    existsSync(target) {
      try { return host.stat(pathOf(target), true).error === undefined; } catch { return false; }
    },
    exists(target, callback) { queueMicrotask(() => callback(fs.existsSync(target))); },
    writeSync(fd, data) {
      if (fd !== 1 && fd !== 2) throw systemError("EBADF", "write");
      const bytes = bytesIn(data);
      host.write(fd, bytes);
      return bytes.length;
    },
    fsyncSync() {},
    promises: { constants: { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4 } },
  };
  for (const [name, run] of Object.entries(sync)) {
    fs[`${name}Sync`] = (...values) => run(...values);
    fs.promises[name] = async (...values) => run(...values);
    fs[name] = (...values) => {
      const callback = values.pop();
      if (typeof callback !== "function") throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "cb" argument must be of type function. Received ${internals.inspect(callback)}`);
      let result;
      try { result = run(...values); } catch (error) { queueMicrotask(() => callback(error)); return; }
      queueMicrotask(() => callback(null, result));
    };
  }

  internals.path = path;
  internals.fs = fs;
});
