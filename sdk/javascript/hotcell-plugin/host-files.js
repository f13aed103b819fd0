// Files over the bindings of `wasi:filesystem`.

import { getDirectories } from "wasi:filesystem/preopens@0.2.9";
import { Denied, InvalidInput, PluginError } from "./errors.js";

const PART = 65536;

/** Opens a path below the granted directory that it leads into, and works there. */
function within(path, work) {
  let best;
  for (const [directory, guest] of getDirectories()) {
    const root = guest.replace(/\/+$/, "");
    const fits = path === guest || path.startsWith(`${root}/`);
    if (fits && (best === undefined || root.length > best.root.length)) best = { directory, root };
  }
  if (best === undefined) throw new Denied(`no directory is granted for \`${path}\` (capability \`fs\`)`);
  const rest = path.slice(best.root.length).replace(/^\/+|\/+$/g, "") || ".";
  try {
    return work(best.directory, rest);
  } catch (thrown) {
    const code = thrown?.payload;
    if (typeof code !== "string") throw thrown;
    if (code === "no-entry") throw new InvalidInput(`there is no \`${path}\``);
    if (["access", "not-permitted", "read-only"].includes(code)) {
      throw new Denied(`\`${path}\` was not granted to be used like this (capability \`fs\`)`);
    }
    throw new PluginError(`\`${path}\`: ${code.replaceAll("-", " ")}`);
  }
}

function open(directory, rest, how, access) {
  return directory.openAt({ symlinkFollow: true }, rest, how, access);
}

export function read(path) {
  return within(path, (directory, rest) => {
    const file = open(directory, rest, {}, { read: true });
    const parts = [];
    let size = 0;
    for (let end = false; !end; ) {
      const [part, ended] = file.read(BigInt(PART), BigInt(size));
      parts.push(part);
      size += part.length;
      end = ended;
    }
    const whole = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  });
}

export function write(path, contents) {
  within(path, (directory, rest) => {
    const file = open(directory, rest, { create: true, truncate: true }, { write: true });
    for (let at = 0; at < contents.length; ) {
      at += Number(file.write(contents.subarray(at, at + PART), BigInt(at)));
    }
  });
}

export function entries(path) {
  return within(path, (directory, rest) => {
    const stream = open(directory, rest, { directory: true }, { read: true }).readDirectory();
    const names = [];
    for (let entry = stream.readDirectoryEntry(); entry !== undefined; entry = stream.readDirectoryEntry()) {
      names.push(entry.name + (entry.type === "directory" ? "/" : ""));
    }
    return names;
  });
}

export function makeDirectory(path) {
  within(path, (directory, rest) => directory.createDirectoryAt(rest));
}

export function remove(path) {
  within(path, (directory, rest) => {
    try {
      directory.unlinkFileAt(rest);
    } catch (thrown) {
      // What unlinking a directory is called differs between systems.
      if (thrown?.payload !== "is-directory" && thrown?.payload !== "not-permitted") throw thrown;
      directory.removeDirectoryAt(rest);
    }
  });
}
