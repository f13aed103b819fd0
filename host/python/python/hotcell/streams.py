"""Runs that are followed or awaited while they are under way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any

from ._hotcell import Work
from .errors import HotcellError
from .runs import Run

#: Something that happened in a run: `docs/reference/events.md` has every kind, by the entry `event`.
Event = dict[str, Any]

#: How long a run that was cancelled may take to come to rest.
_PATIENCE = 5.0

#: Begins a run whose coroutines run in this event loop.
Begin = Callable[[asyncio.AbstractEventLoop | None], Work]


async def _changed(work: Work) -> None:
    """Returns when there is an event, or the end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            # The loop is closed, and nobody waits any more.
            pass

    work.when_changed(tell)
    await future


async def _rest(work: Work) -> None:
    while work.take() is not False:
        await _changed(work)


async def finish(work: Work) -> Run:
    """What comes of a run whose events nobody reads. Whoever cancels this stops the run."""
    try:
        await _rest(work)
    except asyncio.CancelledError:
        work.stop()
        try:
            await asyncio.wait_for(_rest(work), _PATIENCE)
        except TimeoutError:
            pass
        raise
    return Run._of(work.report())


class Stream(Iterator[Event], AsyncIterator[Event]):
    """The events of a run as they happen, for `for` and for `async for`, and then what came of it (`result`).

    The run begins with the first event that is asked for. A stream that is closed, or not referred to any more, stops its run,
    which can be resumed.
    """

    def __init__(self, begin: Begin):
        self._begin = begin
        self._work: Work | None = None
        self._is_closed = False

    def _begun(self, loop: asyncio.AbstractEventLoop | None) -> Work:
        if self._work is None:
            if self._is_closed:
                raise HotcellError("the stream was closed before its run began")
            self._work = self._begin(loop)
        return self._work

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Event:
        found = self._begun(None).next()
        if found is None:
            raise StopIteration
        return json.loads(found)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        work = self._begun(asyncio.get_running_loop())
        while True:
            found = work.take()
            if isinstance(found, str):
                return json.loads(found)
            if found is False:
                raise StopAsyncIteration
            await _changed(work)

    @property
    def run_id(self) -> str | None:
        """The name of the run; None before it begins."""
        return self._work.run() if self._work is not None else None

    @property
    def result(self) -> Run:
        """What came of the run. Raises where it is not over, or did not begin."""
        if self._work is None:
            raise HotcellError("the run has not begun; read the events first")
        return Run._of(self._work.report())

    def close(self) -> None:
        """Stops the run, if it is not over. It can be resumed."""
        self._is_closed = True
        if self._work is not None:
            self._work.stop()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
