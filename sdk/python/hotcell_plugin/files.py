"""Files in the directories that the operator granted. Capability `fs`, with the paths that the plugin uses:
`fs = [{ guest = "/data", access = "read", why = "…" }]` under `[capabilities]` in plugin.toml.

`open` and `pathlib` do not reach them: the interpreter looked for its files when the plugin was built.
"""

from . import _host


def read(path: str) -> bytes:
    """The contents of a file. Raises `InvalidInput` where there is none."""
    with _host.errors():
        return _host.interface("files").read(path)


def read_text(path: str) -> str:
    """The contents of a file as text."""
    return read(path).decode("utf-8")


def write(path: str, contents: bytes | str) -> None:
    """Writes a file, in the place of what was there."""
    with _host.errors():
        _host.interface("files").write(path, contents.encode("utf-8") if isinstance(contents, str) else bytes(contents))


def entries(path: str) -> list[str]:
    """The names in a directory, sorted; those of directories end with `/`."""
    with _host.errors():
        return sorted(_host.interface("files").entries(path))


def make_directory(path: str) -> None:
    """Makes a directory in one that is there."""
    with _host.errors():
        _host.interface("files").make_directory(path)


def remove(path: str) -> None:
    """Removes a file, or a directory that is empty."""
    with _host.errors():
        _host.interface("files").remove(path)
