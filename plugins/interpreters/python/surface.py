"""What a script finds around it: the modules in the image, and the outside as it is when the call begins."""

import asyncio
import codecs
import errno
import importlib
import importlib.abc
import io
import logging
import os
import subprocess
import sys
import time

import connections

# Everything of the standard library that means something without sockets, processes and threads. A module that is
# not in the image cannot be imported later: there is no library on any disk.
_MODULES = """
abc argparse array ast asyncio atexit base64 binascii bisect builtins bz2 calendar cmath cmd code codecs collections
collections.abc colorsys concurrent.futures configparser contextlib contextvars copy copyreg csv dataclasses datetime
decimal difflib dis doctest email email.message email.mime.multipart email.mime.text email.parser email.policy
email.utils encodings.idna enum errno faulthandler fileinput filecmp fnmatch fractions functools gc getopt getpass gettext
glob graphlib gzip hashlib heapq hmac html html.entities html.parser http http.client http.cookies imaplib importlib
importlib.metadata importlib.resources importlib.util inspect io ipaddress itertools json json.decoder json.encoder
json.tool keyword linecache locale logging logging.config logging.handlers lzma marshal math mimetypes numbers
opcode operator optparse os os.path pathlib pickle pickletools pkgutil platform plistlib poplib posixpath pprint
profile pstats pyclbr pydoc queue quopri random re reprlib rlcompleter runpy sched secrets select selectors shelve
shlex shutil signal site smtplib socket sqlite3 ssl stat statistics string string.templatelib stringprep struct
subprocess symtable sys sysconfig tabnanny tarfile tempfile textwrap threading time timeit token tokenize tomllib
trace traceback tracemalloc types typing unicodedata unittest unittest.mock urllib urllib.error urllib.parse
urllib.request urllib.response urllib.robotparser uuid warnings wave weakref xml xml.dom xml.dom.minidom
xml.etree.ElementTree xml.sax xmlrpc.client zipapp zipfile zipimport zlib zoneinfo
_strptime _pydecimal _pyio _markupbase
mailbox modulefinder netrc
_ast_unparse _pylong
""".split()

# Codecs are modules that are looked up when they are first named.
_CODECS = """
ascii latin-1 utf-8 utf-8-sig utf-7 utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be cp437 cp850 cp1250 cp1251
cp1252 iso8859-2 iso8859-15 koi8-r mac-roman idna punycode unicode-escape raw-unicode-escape charmap hex base64
quopri uu rot13 zlib bz2
""".split()


class _NotInTheCell(importlib.abc.MetaPathFinder):
    """Answers last, so that a missing module is explained instead of only named."""

    def find_spec(self, name, path=None, target=None):
        if path is not None or not sys.flags.interactive and name.startswith("_"):
            return None
        raise ModuleNotFoundError(
            f"No module named {name!r} (a script cell carries most of the standard library and no packages)", name=name
        )


def _no_program(self, args, *rest, **named) -> None:
    """Stands in the place of `subprocess.Popen.__init__`: every program is one that is not installed.

    Scripts that expect that catch the error and go on, so it is said as well: whoever runs them would not know that nothing was
    started.
    """
    program = args if isinstance(args, (str, bytes, os.PathLike)) else next(iter(args), "")
    program = os.fsdecode(program)[:200]
    print(f"there is no program `{program}`: a cell starts none", file=sys.stderr)
    raise FileNotFoundError(errno.ENOENT, "a cell starts no programs", program)


def prepare() -> None:
    """Loads everything that the image keeps."""
    connections.install()
    for name in _MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            # This build of CPython lacks what the module needs; scripts get the ordinary exception.
            sys.modules.pop(name, None)
    for name in _CODECS:
        try:
            codecs.lookup(name)
        except LookupError:
            pass
    sys.meta_path.append(_NotInTheCell())
    subprocess.Popen.__init__ = _no_program
    # The finders know the build's directories by heart; forgetting them here is cheaper than with every call.
    sys.path.clear()
    sys.path_importer_cache.clear()
    _buffer_streams()
    asyncio.new_event_loop = asyncio.events.new_event_loop = _Loop


class _Sleeper:
    """Waits for time to pass, the only thing an event loop can wait for here."""

    def select(self, timeout: float | None) -> list:
        if timeout is None:
            raise RuntimeError("the event loop would wait for ever: nothing is scheduled")
        if timeout > 0:
            time.sleep(timeout)
        return []


class _Loop(asyncio.base_events.BaseEventLoop):
    """An event loop without sockets and threads: coroutines, futures and time."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Sleeper()

    def _process_events(self, event_list: list) -> None:
        """No file is ever ready."""

    def _write_to_self(self) -> None:
        """Nobody else can be waiting: there is one thread."""

    def run_in_executor(self, executor, func, *args):
        """What is meant for another thread, as by `asyncio.to_thread`, runs where it is."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def _buffer_streams() -> None:
    """Puts a buffer under the standard streams.

    componentize-py starts Python unbuffered; a text stream straight on a file loses what a single write does not take,
    and here a write takes 64 KiB at most.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        buffer = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
        stream = io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def wake(file_name: str) -> None:
    """Replaces what was true when the image was made by what is true for this call.

    The environment and the seed of `random` are renewed by componentize-py's runtime before it calls anything.
    """
    sys.argv[:] = [file_name]
    sys.path.append(os.path.dirname("/" + file_name.lstrip("/")))
    logging._startTime = time.time_ns()
