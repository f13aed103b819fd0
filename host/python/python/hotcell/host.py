"""Hosts: where runs are kept, which models are asked, what is within reach."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _hotcell
from ._hotcell import NativeAgent, NativeHost
from .errors import Diagnostic, HotcellError
from .runs import Question, Run, RunSummary
from .streams import Stream, finish
from .tools import handed, tools_of

_log = logging.getLogger("hotcell")

#: A path.
PathLike = str | os.PathLike[str]
#: Answers a question, or gives None for an answer another time.
Ask = Callable[[Question], str | None]
#: The name of a run or the beginning of one, or the run.
Which = str | Run | RunSummary


# Loads the native half alone, by its file, and compiles.
_COMPILE = """
import sys
from importlib import machinery, util
loader = machinery.ExtensionFileLoader("_hotcell", sys.argv[1])
module = util.module_from_spec(util.spec_from_loader("_hotcell", loader))
loader.exec_module(module)
sys.exit(module.compile(sys.argv[2:]))
"""


def _compile_in_processes() -> None:
    """Has components compiled by further interpreters, with limits. Where Python is embedded in another program, nobody knows how to
    start one, and they are compiled in this process."""
    program = sys.executable or ""
    if os.path.basename(program).startswith("python") and _hotcell.__file__:
        _hotcell.compile_in_processes(program, ["-I", "-S", "-c", _COMPILE, _hotcell.__file__])


@dataclass(frozen=True)
class ProviderGateway:
    """How models are reached.

    >>> from hotcell import ProviderGateway
    >>> ProviderGateway(model="openai:gpt-5-mini", environment={"OPENAI_API_KEY": "..."}).model
    'openai:gpt-5-mini'
    """

    #: The variables with keys and addresses of providers (`OPENAI_API_KEY`, ...); None for those of this process
    environment: Mapping[str, str] | None = None
    #: The model of nodes that name none: `provider:model`
    model: str | None = None
    #: A file to which every exchange with a model is added
    record: PathLike | None = None
    #: A file of such exchanges that answers in place of models, without any network
    replay: PathLike | None = None

    def _variables(self) -> list[tuple[str, str]] | None:
        if self.environment is None and self.model is None:
            return None
        variables = dict(os.environ if self.environment is None else self.environment)
        if self.model is not None:
            variables["HOTCELL_MODEL"] = self.model
        return [*variables.items()]


def run_name(run: Which) -> str:
    """The name of a run."""
    return run if isinstance(run, str) else run.id


def asking(ask: Ask | None) -> Callable[[str], str | None] | None:
    """Whoever answers, as the native half takes it."""
    if ask is None:
        return None
    return lambda question: ask(Question._of(json.loads(question)))


class Runs:
    """What can be done with runs that have begun: of a host, or of an agent with its tools."""

    _native: NativeHost

    def answer(self, run: Which, text: str, *, question: str | None = None) -> Question:
        """Sends the answer to a question of a run: the one of this id, or the only one there is. A run that is under way takes it at once;
        another one goes on when it is resumed."""
        return Question._of(json.loads(self._native.answer(run_name(run), text, question)))

    def questions(self, run: Which) -> list[Question]:
        """The questions of a run that wait for answers."""
        return [Question._of(one) for one in json.loads(self._native.questions(run_name(run)))]

    def resume(self, run: Which, *, ask: Ask | None = None) -> Run:
        """Goes on with a run that waits, was interrupted or paused, until it rests again. What was committed is not done again."""
        return Run._of(self._native.resume(run_name(run), asking(ask)))

    async def resume_async(self, run: Which, *, ask: Ask | None = None) -> Run:
        """The same for `await`."""
        loop = asyncio.get_running_loop()
        return await finish(self._native.begin_resume(run_name(run), asking(ask), loop))

    def resume_stream(self, run: Which, *, ask: Ask | None = None) -> Stream:
        """The same, with the events as they happen."""
        return Stream(lambda loop: self._native.begin_resume(run_name(run), asking(ask), loop, True))

    def retry(self, run: Which, *, ask: Ask | None = None) -> Run:
        """Goes on with a run that failed, from where it failed."""
        return Run._of(self._native.resume(run_name(run), asking(ask), True))

    def pause(self, run: Which) -> str:
        """Has a run rest until it is resumed. Gives its status."""
        return self._native.pause(run_name(run))

    def cancel(self, run: Which) -> None:
        """Ends a run for good."""
        self._native.cancel(run_name(run))

    def runs(self, *, status: str | None = None, thread: str | None = None, limit: int = 100) -> list[RunSummary]:
        """Runs in the journal, the newest first."""
        return [RunSummary(**one) for one in json.loads(self._native.runs(status, thread, limit))]


class Host(Runs):
    """Loads and runs agents. All hosts of a process share what is compiled, so that further ones cost little.

    Args:
        journal: Where runs are kept: a file, `"memory"`, or the user's own journal, which `hotcell runs` shows.
        gateway: How models are reached.
        plugins: Folders with plugins, beside `plugins` in the folder of an agent and the user's own.
        trust: Whether the `hotcell.toml` in the folder of an agent that this program loads grants what it says.
        isolated: Whether nothing of the user's own settings, plugins, keys and runs counts. Every folder is trusted then: for tests,
            and for programs that make the folders themselves.
    """

    def __init__(
        self,
        *,
        journal: PathLike | None = None,
        gateway: ProviderGateway | None = None,
        plugins: Iterable[PathLike] = (),
        trust: bool = False,
        isolated: bool = False,
    ):
        gateway = gateway or ProviderGateway()
        _compile_in_processes()
        self._native = NativeHost(
            {
                "journal": None if journal is None or journal == "memory" else os.fspath(journal),
                "in_memory": journal == "memory",
                "plugins": [os.fspath(one) for one in plugins],
                "trust": trust,
                "isolated": isolated,
                "environment": gateway._variables(),
                "record": gateway.record and os.fspath(gateway.record),
                "replay": gateway.replay and os.fspath(gateway.replay),
            }
        )

    def _load(
        self, path: PathLike, name: str | None, registry: Any, tools: Iterable[Any], types: list[tuple[str, str]]
    ) -> tuple[NativeHost, NativeAgent, dict[str, Any]]:
        native = self._native.offering(handed(tools_of(registry, tools)), types)
        agent = native.load(os.fspath(path), name)
        about = json.loads(agent.about())
        for told in about["warnings"]:
            finding = Diagnostic._of(told)
            if finding.severity == "warning":
                _log.warning("%s", finding)
        return native, agent, about


_default: Host | None = None
_lock = threading.Lock()


def default_host() -> Host:
    """The host of programs that set up none: with the user's own journal and settings."""
    global _default
    with _lock:
        if _default is None:
            _default = Host()
        return _default


def host_of(host: Host | None, gateway: ProviderGateway | None) -> Host:
    """The host that is meant."""
    if host is not None and gateway is not None:
        raise HotcellError("give `gateway` to the host, or leave `host` out")
    return host or (default_host() if gateway is None else Host(gateway=gateway))
