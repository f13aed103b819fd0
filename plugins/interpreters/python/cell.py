"""The Python cell: CPython with the standard library already imported, running one script per instance.

`componentize-py` imports this module when hotcell is built and keeps the memory it leaves behind, so everything at
module level is part of the image and must not depend on the environment, the clock or a random seed. `run` undoes
what the interpreter itself read at start.
"""

import atexit
import builtins
import gc
import linecache
import os
import random
import sys
import traceback
import types

import surface
import wit_world


class WitWorld(wit_world.WitWorld):
    """The exports of the world `interpreter`."""

    def init(self) -> None:
        """Nothing is left to start: the image was made while this module was imported."""

    def run(self, file_name: str, source: str) -> int:
        """Executes a script as `__main__` and returns its exit code."""
        surface.wake(file_name)
        code = _execute(file_name, source)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                # The script closed or replaced it; what it wrote before is out.
                pass
        return code


def _execute(file_name: str, source: str) -> int:
    main = types.ModuleType("__main__")
    main.__file__ = "/" + file_name.lstrip("/")
    main.__builtins__ = builtins
    main.__spec__ = None
    sys.modules["__main__"] = main
    # Tracebacks quote the source, which is in no file.
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    try:
        exec(compile(source, file_name, "exec", dont_inherit=True), main.__dict__)
        code = 0
    except SystemExit as request:
        code = _exit_code(request.code)
    except BaseException as error:
        # The first frame is this function's.
        frames = error.__traceback__
        _report(error, frames.tb_next if frames is not None else None)
        code = 1
    try:
        atexit._run_exitfuncs()
    except SystemExit as request:
        code = _exit_code(request.code)
    except BaseException as error:
        _report(error, error.__traceback__)
    return code


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    print(code, file=sys.stderr)
    return 1


def _report(error: BaseException, frames: types.TracebackType | None) -> None:
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        pass
    hook = sys.excepthook
    if hook is not sys.__excepthook__:
        hook(type(error), error, frames)
        return
    traceback.print_exception(type(error), error, frames, file=sys.stderr)


surface.prepare()
random.seed(0)
gc.collect()
# What is in the image stays: a collection during a call need not touch its pages.
gc.freeze()
