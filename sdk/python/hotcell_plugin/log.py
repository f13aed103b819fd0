"""Notes for whoever watches the run. They never become part of the result."""

from . import _host


def _write(level: str, message: object) -> None:
    _host.interface("log").log(level, str(message))


def trace(message: object) -> None:
    """Every step; for the plugin's author."""
    _write("trace", message)


def debug(message: object) -> None:
    """What helps to find a mistake."""
    _write("debug", message)


def info(message: object) -> None:
    """What happened, in the order of things."""
    _write("info", message)


def warn(message: object) -> None:
    """Something is not as it should be, and the call goes on."""
    _write("warn", message)


def error(message: object) -> None:
    """Something failed."""
    _write("error", message)
