"""Files over the bindings of `wasi:filesystem`. Imported only while a plugin that asks for `fs` is built."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from componentize_py_types import Err
from wit_world.imports import preopens
from wit_world.imports import wasi_filesystem_types as types

from .errors import Denied, InvalidInput, PluginError

#: Bytes that are read or written at once.
_PART = 65536
_NONE = types.OpenFlags(0)
_DENIED = (types.ErrorCode.ACCESS, types.ErrorCode.NOT_PERMITTED, types.ErrorCode.READ_ONLY)


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except Err as error:
        code = error.value
        if code == types.ErrorCode.NO_ENTRY:
            raise InvalidInput(f"there is no `{path}`") from None
        if code in _DENIED:
            raise Denied(f"`{path}` was not granted to be used like this (capability `fs`)") from None
        raise PluginError(f"`{path}`: {code.name.lower().replace('_', ' ')}") from None


def _at(path: str) -> tuple[Any, str]:
    """The granted directory that a path leads into, and the rest of the path."""
    best = None
    for directory, guest in preopens.get_directories():
        root = guest.rstrip("/")
        if (path == guest or path.startswith(root + "/")) and (best is None or len(root) > len(best[1])):
            best = (directory, root)
    if best is None:
        raise Denied(f"no directory is granted for `{path}` (capability `fs`)")
    return best[0], path[len(best[1]) :].strip("/") or "."


def _open(path: str, how: Any, access: Any) -> Any:
    directory, rest = _at(path)
    return directory.open_at(types.PathFlags.SYMLINK_FOLLOW, rest, how, access)


def read(path: str) -> bytes:
    """The contents of a file."""
    with _errors(path), _open(path, _NONE, types.DescriptorFlags.READ) as file:
        parts, offset, end = [], 0, False
        while not end:
            part, end = file.read(_PART, offset)
            parts.append(part)
            offset += len(part)
        return b"".join(parts)


def write(path: str, contents: bytes) -> None:
    """Writes a file."""
    how = types.OpenFlags.CREATE | types.OpenFlags.TRUNCATE
    with _errors(path), _open(path, how, types.DescriptorFlags.WRITE) as file:
        offset = 0
        while offset < len(contents):
            offset += file.write(contents[offset : offset + _PART], offset)


def entries(path: str) -> list[str]:
    """The names in a directory."""
    names = []
    with _errors(path), _open(path, types.OpenFlags.DIRECTORY, types.DescriptorFlags.READ) as directory:
        with directory.read_directory() as stream:
            while (entry := stream.read_directory_entry()) is not None:
                names.append(entry.name + ("/" if entry.type == types.DescriptorType.DIRECTORY else ""))
    return names


def make_directory(path: str) -> None:
    """Makes a directory."""
    with _errors(path):
        directory, rest = _at(path)
        directory.create_directory_at(rest)


def remove(path: str) -> None:
    """Removes a file, or a directory that is empty."""
    with _errors(path):
        directory, rest = _at(path)
        try:
            directory.unlink_file_at(rest)
        except Err as error:
            # What unlinking a directory is called differs between systems.
            if error.value not in (types.ErrorCode.IS_DIRECTORY, types.ErrorCode.NOT_PERMITTED):
                raise
            directory.remove_directory_at(rest)
