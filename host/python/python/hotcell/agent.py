"""Agents, of every language that hotcell reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ._annotations._shapes import shape
from ._annotations.errors import DeclarationError
from ._hotcell import NativeAgent
from .errors import Diagnostic, HotcellError, InputError
from .host import Ask, Host, PathLike, ProviderGateway, Runs, asking, host_of
from .runs import Run
from .streams import Stream, finish

T = TypeVar("T")


@dataclass
class Conversation:
    """What was said so far: hand it to the next `invoke`, and keep it wherever you like (it is JSON).

    >>> from hotcell import Conversation
    >>> Conversation([{"role": "user", "content": "hello"}]).messages[0]["content"]
    'hello'
    """

    messages: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class AgentResult(Generic[T]):
    """What an agent answered."""

    #: The reply: of the type that was given as `reply_type`, else what JSON has, or a text where the agent declares no schema
    reply: T
    #: The conversation with the new turns
    conversation: Conversation
    #: What its requests to models cost by the price table, in US dollars
    cost_usd: float
    #: How often a model replied
    iterations: int
    #: The run in the journal
    run: Run


@dataclass(frozen=True)
class ToolInfo:
    """Something that an agent may call."""

    name: str
    #: `tool`, `agent`, or `function` for a function of this program
    kind: str
    description: str

    @property
    def sealed(self) -> bool:
        """Whether it runs in a cell, or by what the operator granted; a function of this program does not."""
        return self.kind != "function"


@dataclass(frozen=True)
class Loop:
    """Something in an agent that asks a model."""

    name: str
    model: str | None
    tools: tuple[ToolInfo, ...]
    #: How often the model is asked at most; None for any number
    max_requests: int | None
    #: The JSON schema of its reply
    output_schema: Mapping[str, Any] | None
    max_cost_usd: float | None
    #: What a run is expected to cost, from and to, in US dollars; None without a price
    cost_usd: tuple[float | None, float | None]


class Agent(Runs, Generic[T]):
    """An agent, a flow, a workflow or a mesh that is loaded, in any of the five languages.

    `Agent.from_yaml` loads one. What runs of it call in turn are its tools: sealed ones that its file and folder name, and functions of this program
    that are handed in.
    """

    def __init__(self, native: NativeAgent, host: Any, about: Mapping[str, Any], reply_type: type[T] | None = None):
        self._agent, self._native, self._about = native, host, about
        self._reply_type = reply_type

    @classmethod
    def from_yaml(
        cls,
        path: PathLike,
        *,
        gateway: ProviderGateway | None = None,
        tool_registry: Any = None,
        tools: Iterable[Any] = (),
        reply_type: type[T] | None = None,
        schemas: Mapping[str, Any] | None = None,
        host: Host | None = None,
        name: str | None = None,
    ) -> Agent[T]:
        """Loads an agent. Nothing of it is run.

        Args:
            path: Its file (YAML or JSON), or the folder that holds one.
            gateway: How models are reached; not together with `host`.
            tool_registry: Functions of this program as tools: a `ToolRegistry`, or AgentLoom's.
            tools: Further ones. The agent has those that its file names. They are not sealed.
            reply_type: What replies are made into: a Pydantic model, a dataclass or a TypedDict. It is also the schema that an `output_schema` with
                `type: pydantic` names, if that has its name.
            schemas: Further types that the file names, by import path or name: types, or JSON schemas.
            host: Where runs are kept, and more; the user's own without one.
            name: Which of several agents of the file is meant.

        Raises `LoadError`, whose `diagnostics` have every finding.
        """
        types = [(key, json.dumps(_schema(one))) for key, one in (schemas or {}).items()]
        if reply_type is not None:
            own = {reply_type.__name__, f"{reply_type.__module__}.{reply_type.__qualname__}"}
            types.extend((key, json.dumps(_schema(reply_type))) for key in sorted(own) if key not in (schemas or {}))
        native, agent, about = host_of(host, gateway)._load(path, name, tool_registry, tools, types)
        if reply_type is not None and not any(one["output_schema"] for one in about["loops"]):
            raise TypeError(
                f"`{about['name']}` has no `output_schema`, so its reply is a text and no `{reply_type.__name__}`"
            )
        return cls(agent, native, about, reply_type)

    load = from_yaml

    @property
    def name(self) -> str:
        """Its name."""
        return self._about["name"]

    @property
    def description(self) -> str | None:
        """What it says it does."""
        return self._about["description"]

    @property
    def language(self) -> str:
        """The language of its file: `loki`, `sherma`, `agentspec`, `agentloom` or `leafmesh`."""
        return self._about["language"]

    @property
    def file(self) -> str:
        """Its file."""
        return self._about["file"]

    @property
    def warnings(self) -> list[Diagnostic]:
        """What is probably not as meant. Warnings are also in the log `hotcell`."""
        return [Diagnostic._of(one) for one in self._about["warnings"]]

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of what it takes: `prompt` is the text, the others are `values`."""
        return self._about["input_schema"]

    @property
    def loops(self) -> list[Loop]:
        """What in it asks models, and what that may call and cost."""

        def of(told: Mapping[str, Any]) -> Loop:
            tools = tuple(ToolInfo(one["name"], one["kind"], one["description"]) for one in told["tools"])
            cost = (told["cost"]["low_usd"], told["cost"]["high_usd"])
            limits = (told["max_requests"], told["output_schema"], told["max_cost_usd"])
            return Loop(told["name"], told["model"], tools, *limits, cost)

        return [of(one) for one in self._about["loops"]]

    async def invoke(self, user_message: str, conversation: Conversation | None = None) -> AgentResult[T]:
        """Asks an agent definition (`system_prompt`): one message, in a conversation if one is given.

        Raises `RunFailed` where a limit ended it, or its reply does not fit.
        """
        given = self._turn(user_message, conversation)
        run = await finish(self._agent.begin(given, None, asyncio.get_running_loop()))
        return self._result(run)

    def invoke_sync(self, user_message: str, conversation: Conversation | None = None) -> AgentResult[T]:
        """The same without `await`."""
        return self._result(Run._of(self._agent.run(self._turn(user_message, conversation))))

    def run(
        self,
        prompt: str | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        thread: str | None = None,
        ask: Ask | None = None,
    ) -> Run:
        """Runs it until it rests: it has a result, failed, or waits for an answer. `Run.check` raises where there is no result.

        Args:
            prompt: The text.
            values: Variables, inputs of a flow, or fields of the state, by their names (`input_schema`).
            state: Fields of the state.
            thread: The conversation that the run belongs to; the journal knows what was said in it before.
            ask: Answers questions while the run is under way. Without it, the run waits in the journal.
        """
        return Run._of(self._agent.run(_given(prompt, values, state, thread), asking(ask)))

    async def run_async(
        self,
        prompt: str | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        thread: str | None = None,
        ask: Ask | None = None,
    ) -> Run:
        """The same for `await`. Tools that are coroutines run in the loop of whoever awaits. Whoever cancels this stops the run."""
        given = _given(prompt, values, state, thread)
        return await finish(self._agent.begin(given, asking(ask), asyncio.get_running_loop()))

    def stream(
        self,
        prompt: str | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        thread: str | None = None,
        ask: Ask | None = None,
    ) -> Stream:
        """The same, with the events as they happen, for `for` or `async for`."""
        given = _given(prompt, values, state, thread)
        return Stream(lambda loop: self._agent.begin(given, asking(ask), loop, True))

    def _turn(self, user_message: str, conversation: Conversation | None) -> dict[str, str | None]:
        if not self._about["is_definition"]:
            raise HotcellError(
                f"`{self.name}` is not an agent definition (it has no `system_prompt`); use `run`, `run_async` or `stream`"
            )
        if not isinstance(user_message, str):
            raise TypeError(f"`user_message` must be a text, not {_named(user_message)}")
        if conversation is None:
            return _given(user_message, None, None, None)
        if not isinstance(conversation, Conversation):
            raise TypeError(
                f"`conversation` must be a `Conversation`, not {_named(conversation)}; "
                "make one of its messages: `Conversation(messages)`"
            )
        return _given(user_message, None, {"conversation": {"messages": conversation.messages}}, None)

    def _result(self, run: Run) -> AgentResult[T]:
        state = run.check().state
        conversation = Conversation(state["conversation"]["messages"])
        reply = _made(state["reply"], self._reply_type)
        return AgentResult(reply, conversation, state["cost_usd"], state["iterations"], run)

    def __repr__(self) -> str:
        return f"<hotcell.Agent `{self.name}` ({self.language})>"


def _given(
    prompt: str | None, values: Mapping[str, Any] | None, state: Mapping[str, Any] | None, thread: str | None
) -> dict[str, str | None]:
    for name, given in (("prompt", prompt), ("thread", thread)):
        if given is not None and not isinstance(given, str):
            raise TypeError(f"`{name}` must be a text, not {_named(given)}")

    def text(name: str, given: Mapping[str, Any] | None) -> str | None:
        if given is None:
            return None
        try:
            return json.dumps(given, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"`{name}` cannot be written as JSON: {error}") from None

    return {"prompt": prompt, "values": text("values", values), "state": text("state", state), "thread": thread}


def _named(value: Any) -> str:
    """The type of a value, in an error."""
    return "None" if value is None else f"`{type(value).__name__}`"


def _schema(kind: Any) -> Any:
    """The JSON schema of a type; one that is a schema is taken as it is."""
    if isinstance(kind, Mapping):
        return kind
    if hasattr(kind, "model_json_schema"):
        return kind.model_json_schema()
    try:
        return shape(kind, f"`{getattr(kind, '__name__', kind)}`").schema
    except DeclarationError as error:
        raise TypeError(str(error)) from None


def _made(value: Any, kind: Any) -> Any:
    """A reply, which fits its schema, as the type that is wanted."""
    if kind is None:
        return value
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    return shape(kind, "the reply").read(value, "the reply")


def check(path: PathLike, *, host: Host | None = None, tools: Iterable[Any] = ()) -> list[Diagnostic]:
    """What is wrong, or may be, with the agent at this path. Nothing of it is run, and nothing is raised for what is found."""
    from .errors import LoadError

    try:
        return Agent.from_yaml(path, host=host, tools=tools).warnings
    except LoadError as error:
        return error.diagnostics
