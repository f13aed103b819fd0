// `process`, `console` and the timers. Everything of the outside comes in through `internals.begin`,
// which runs once per call: nothing here may read the environment or the clock while it is being evaluated.
(function (host, internals) {
  "use strict";

  const { format, inspect } = internals;

  function stream(fd) {
    return {
      fd,
      isTTY: false,
      writable: true,
      columns: 80,
      write(chunk, encoding, done) {
        host.write(fd, typeof chunk === "string" || chunk instanceof Uint8Array ? chunk : String(chunk));
        const callback = typeof encoding === "function" ? encoding : done;
        if (typeof callback === "function") queueMicrotask(() => callback());
        return true;
      },
      end(chunk) { if (chunk !== undefined) this.write(chunk); },
      on() { return this; },
      once() { return this; },
      emit() { return false; },
      removeListener() { return this; },
      cork() {},
      uncork() {},
    };
  }

  function exitCodeOf(code) {
    if (code === undefined || code === null) return 0;
    const number = Number(code);
    return Number.isInteger(number) ? number & 255 : 1;
  }

  const listeners = new Map();
  const process = {
    title: "node",
    version: "v20.20.0",
    versions: { node: "20.20.0", hotcell: "0.1.0" },
    release: { name: "node" },
    platform: "linux",
    arch: "wasm32",
    pid: 1,
    ppid: 0,
    exitCode: undefined,
    execPath: "/usr/bin/node",
    execArgv: [],
    argv0: "node",
    argv: ["/usr/bin/node", ""],
    env: {},
    features: {},
    config: {},
    stdout: stream(1),
    stderr: stream(2),
    stdin: {
      fd: 0,
      isTTY: false,
      setEncoding() { return this; },
      resume() { return this; },
      pause() { return this; },
      read() { return null; },
      on(name, listener) {
        if (name === "end" || name === "close") queueMicrotask(() => listener());
        return this;
      },
      once(name, listener) { return this.on(name, listener); },
      async *[Symbol.asyncIterator]() {},
    },
    exit(code) {
      if (code !== undefined) process.exitCode = code;
      process.emit("exit", exitCodeOf(process.exitCode));
      host.exit(exitCodeOf(process.exitCode));
    },
    reallyExit(code) { host.exit(exitCodeOf(code)); },
    abort() { host.exit(134); },
    cwd() { return "/"; },
    chdir(directory) { throw internals.systemError("ENOSYS", "chdir", directory); },
    umask() { return 0o22; },
    getuid() { return 0; },
    getgid() { return 0; },
    uptime() { return (host.monotonic() - internals.startedAt) / 1000; },
    hrtime(previous) {
      const now = host.monotonic();
      let seconds = Math.floor(now / 1000);
      let nanoseconds = Math.round((now % 1000) * 1e6);
      if (previous) {
        seconds -= previous[0];
        nanoseconds -= previous[1];
        if (nanoseconds < 0) { seconds -= 1; nanoseconds += 1e9; }
      }
      return [seconds, nanoseconds];
    },
    memoryUsage() {
      const bytes = host.memoryBytes();
      return { rss: bytes, heapTotal: bytes, heapUsed: bytes, external: 0, arrayBuffers: 0 };
    },
    cpuUsage() { return { user: Math.round((host.monotonic() - internals.startedAt) * 1000), system: 0 }; },
    nextTick(callback, ...values) { queueMicrotask(() => callback(...values)); },
    emitWarning(warning) { host.write(2, `Warning: ${warning?.message ?? warning}\n`); },
    kill() { throw internals.systemError("EPERM", "kill"); },
    on(name, listener) {
      if (!listeners.has(name)) listeners.set(name, []);
      listeners.get(name).push(listener);
      return process;
    },
    once(name, listener) {
      const wrapped = (...values) => { process.removeListener(name, wrapped); listener(...values); };
      return process.on(name, wrapped);
    },
    removeListener(name, listener) {
      const known = listeners.get(name) ?? [];
      const index = known.indexOf(listener);
      if (index >= 0) known.splice(index, 1);
      return process;
    },
    removeAllListeners(name) { name === undefined ? listeners.clear() : listeners.delete(name); return process; },
    listeners(name) { return [...(listeners.get(name) ?? [])]; },
    listenerCount(name) { return (listeners.get(name) ?? []).length; },
    emit(name, ...values) {
      const known = [...(listeners.get(name) ?? [])];
      for (const listener of known) listener.apply(process, values);
      return known.length > 0;
    },
  };
  process.addListener = process.on;
  process.off = process.removeListener;
  process.hrtime.bigint = () => BigInt(Math.round(host.monotonic() * 1e6));
  Object.defineProperty(process, Symbol.toStringTag, { value: "process", configurable: true });

  // As in Node, what is put into the environment becomes text.
  internals.environment = process.env;
  process.env = new Proxy(process.env, {
    set(target, name, value) { target[name] = typeof name === "symbol" ? value : String(value); return true; },
  });

  internals.process = process;
  internals.begin = (file) => {
    internals.startedAt = host.monotonic();
    process.argv[1] = file;
  };
  // The exit code, or nothing while listeners may still have more to do.
  internals.finish = () => {
    if (listeners.size === 0) return exitCodeOf(process.exitCode);
    process.emit("beforeExit", exitCodeOf(process.exitCode));
    return undefined;
  };
  internals.finished = () => {
    process.emit("exit", exitCodeOf(process.exitCode));
    return exitCodeOf(process.exitCode);
  };
  internals.describe = (error) => (error instanceof Error ? inspect(error) : `Uncaught ${inspect(error)}`) + "\n";

  let groups = "";
  const counters = new Map();
  const stopwatches = new Map();
  function line(fd, values) {
    if (values.length === 1 && typeof values[0] === "string" && groups === "") {
      host.write(fd, values[0] + "\n");
      return;
    }
    let text = format(...values);
    if (groups !== "") text = groups + text.replaceAll("\n", "\n" + groups);
    host.write(fd, text + "\n");
  }
  function elapsed(label) {
    return `${label}: ${(host.monotonic() - stopwatches.get(label)).toFixed(3)}ms`;
  }
  function table(rows, columns) {
    if (rows === null || typeof rows !== "object") return line(1, [rows]);
    const keys = Object.keys(rows);
    const names = columns ?? [...new Set(keys.flatMap((key) => rows[key] !== null && typeof rows[key] === "object" ? Object.keys(rows[key]) : []))];
    const plain = keys.some((key) => rows[key] === null || typeof rows[key] !== "object");
    const head = ["(index)", ...names, ...(plain && !columns ? ["Values"] : [])];
    const body = keys.map((key) => {
      const row = rows[key];
      const isObject = row !== null && typeof row === "object";
      const cells = names.map((name) => isObject && name in row ? inspect(row[name], { depth: 0 }) : "");
      return [key, ...cells, ...(plain && !columns ? [isObject ? "" : inspect(row)] : [])];
    });
    const widths = head.map((cell, column) => Math.max(cell.length, ...body.map((row) => row[column].length)) + 2);
    const rule = (left, middle, right) => left + widths.map((width) => "─".repeat(width)).join(middle) + right;
    const show = (row) => "│" + row.map((cell, column) => ` ${cell}`.padEnd(widths[column])).join("│") + "│";
    line(1, [[rule("┌", "┬", "┐"), show(head), rule("├", "┼", "┤"), ...body.map(show), rule("└", "┴", "┘")].join("\n")]);
  }

  const console = {
    log(...values) { line(1, values); },
    info(...values) { line(1, values); },
    debug(...values) { line(1, values); },
    error(...values) { line(2, values); },
    warn(...values) { line(2, values); },
    trace(...values) { line(2, [`Trace: ${format(...values)}`.trimEnd() + "\n" + String(new Error().stack ?? "")]); },
    dir(value, options) { line(1, [inspect(value, options)]); },
    dirxml(...values) { line(1, values); },
    table,
    assert(condition, ...values) {
      if (condition) return;
      line(2, values.length === 0 ? ["Assertion failed"] : typeof values[0] === "string" ? [`Assertion failed: ${values[0]}`, ...values.slice(1)] : ["Assertion failed:", ...values]);
    },
    count(label = "default") {
      counters.set(label, (counters.get(label) ?? 0) + 1);
      line(1, [`${label}: ${counters.get(label)}`]);
    },
    countReset(label = "default") { counters.delete(label); },
    group(...values) { if (values.length > 0) line(1, values); groups += "  "; },
    groupCollapsed(...values) { console.group(...values); },
    groupEnd() { groups = groups.slice(2); },
    time(label = "default") { stopwatches.set(label, host.monotonic()); },
    timeLog(label = "default", ...values) { if (stopwatches.has(label)) line(1, [elapsed(label), ...values]); },
    timeEnd(label = "default") { if (stopwatches.has(label)) { line(1, [elapsed(label)]); stopwatches.delete(label); } },
    clear() {},
  };
  internals.console = console;

  class Timeout {
    constructor(id) { this.id = id; }
    ref() { return this; }
    unref() { host.unrefTimer(this.id); return this; }
    hasRef() { return true; }
    close() { host.clearTimer(this.id); return this; }
    [Symbol.toPrimitive]() { return this.id; }
  }
  function delayOf(delay) {
    const number = Number(delay);
    return number >= 1 && number <= 2147483647 ? number : 1;
  }
  function start(callback, delay, repeat, values) {
    if (typeof callback !== "function") {
      throw internals.coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "callback" argument must be of type function. Received ${inspect(callback)}`);
    }
    return new Timeout(host.setTimer(values.length === 0 ? callback : () => callback(...values), delay, repeat));
  }
  const timers = {
    setTimeout: (callback, delay, ...values) => start(callback, delayOf(delay), false, values),
    setInterval: (callback, delay, ...values) => start(callback, delayOf(delay), true, values),
    setImmediate: (callback, ...values) => start(callback, 0, false, values),
    clearTimeout: (timer) => { if (timer !== undefined && timer !== null) host.clearTimer(Number(timer)); },
  };
  timers.clearInterval = timers.clearTimeout;
  timers.clearImmediate = timers.clearTimeout;
  internals.timers = timers;

  function coded(Kind, code, message) {
    const error = new Kind(message);
    error.code = code;
    return error;
  }
  internals.coded = coded;
  internals.systemError = (code, call, path) => {
    const texts = {
      ENOENT: "no such file or directory", EACCES: "permission denied", EPERM: "operation not permitted", EEXIST: "file already exists",
      ENOTDIR: "not a directory", EISDIR: "illegal operation on a directory", ENOTEMPTY: "directory not empty", ENOSYS: "function not implemented",
      EROFS: "read-only file system", EINVAL: "invalid argument", EBADF: "bad file descriptor", EIO: "i/o error",
    };
    const error = coded(Error, code, `${code}: ${texts[code] ?? "operation failed"}, ${call}${path === undefined ? "" : ` '${path}'`}`);
    error.errno = -1;
    error.syscall = call;
    if (path !== undefined) error.path = String(path);
    return error;
  };
});
