"""Functions of the program as tools."""

import asyncio
import dataclasses
import logging
import threading

import pytest
from conftest import TOOL_STEP, lookup_account

from hotcell import Agent, LoadError, ToolRegistry, tool


def step(write, host, function, **given):
    return Agent.from_yaml(write(TOOL_STEP), host=host, tools=[function], **given).run()


def named(function):
    return tool(name="lookup_account")(function)


def test_annotations_become_a_schema():
    @dataclasses.dataclass
    class Place:
        """A place.

        Attributes:
            name: Its name.
        """

        name: str

    @tool
    def find(place: Place, most: int = 3) -> list[str]:
        """Finds things.

        Args:
            most: How many.
        """
        return [place.name] * most

    properties = find.parameters["properties"]
    assert properties["most"] == {"type": "integer", "description": "How many.", "default": 3}
    assert properties["place"]["properties"]["name"] == {"type": "string", "description": "Its name."}
    assert find.parameters["required"] == ["place"]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda x: x, "has no type"),
        (lambda *x: x, r"`\*args`"),
    ],
)
def test_a_function_that_cannot_be_described_is_refused(function, problem):
    with pytest.raises(TypeError, match=problem):
        tool(function)


@pytest.mark.parametrize("name", ["", "a b", "mcp:server/f", "x" * 65, "é"])
def test_names_that_models_cannot_say_are_refused(write, host, name):
    given = dataclasses.replace(tool(lookup_account), name=name)
    with pytest.raises(ValueError, match="is not a valid function name"):
        step(write, host, given)


def test_a_name_is_given_once(write, host):
    registry = ToolRegistry([lookup_account])
    with pytest.raises(ValueError, match="already"):
        registry.register(lookup_account)
    with pytest.raises(ValueError, match="offered twice"):
        step(write, host, lookup_account, tool_registry=registry)
    with pytest.raises(KeyError, match="lookup_account"):
        registry.get("other")
    with pytest.raises(TypeError, match="is not a tool"):
        registry.register(3)


def test_an_exception_is_the_calls_own_affair(write, host, caplog):
    def fails(customer: str) -> str:
        """Fails."""
        raise LookupError(f"no account of {customer}")

    with caplog.at_level(logging.WARNING, "hotcell.tools"):
        run = step(write, host, named(fails))
    assert run.status == "failed"
    assert "LookupError: no account of Ada" in run.error
    assert "no account of Ada" in caplog.text and "Traceback" in caplog.text


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), RecursionError("deep")])
def test_nothing_that_is_raised_takes_the_process_down(write, host, raised):
    def fails(customer: str) -> str:
        """Fails."""
        raise raised

    run = step(write, host, named(fails))
    assert run.status == "failed" and type(raised).__name__ in run.error


def test_results_that_are_not_json_fail_the_call(write, host):
    for value in (object(), float("nan"), {1, 2}, b"bytes"):
        run = step(write, host, _gives(value))
        assert run.status == "failed", value


def _gives(value):
    def gives(customer: str):
        """Gives."""
        return value

    return named(gives)


def test_results_are_bounded(write, host):
    assert step(write, host, _gives("x" * 1_000_000)).status == "completed"
    run = step(write, host, _gives("x" * 1_100_000))
    assert run.status == "failed" and "`output-too-large`" in run.error


def test_arguments_fit_the_annotations(write, host):
    def takes(customer: int) -> int:
        """Takes a number."""
        return customer

    run = step(write, host, named(takes))
    assert run.status == "failed" and "integer" in run.error


def test_coroutines_run_in_the_loop_of_whoever_awaits(write, host):
    loops = []

    async def finds(customer: str) -> str:
        """Finds."""
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return "found"

    async def main():
        agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[named(finds)])
        run = await agent.run_async()
        assert run.check().state["account"] == "found"
        stream = agent.stream()
        async for _ in stream:
            pass
        assert stream.result.check().state["account"] == "found"
        assert loops == [asyncio.get_running_loop()] * 2

    asyncio.run(main())
    assert step(write, host, named(finds)).check().state["account"] == "found"


def test_a_tool_may_run_an_agent(write, host):
    inner = Agent.from_yaml(write(TOOL_STEP, "inner.yaml"), host=host, tools=[lookup_account])

    def asks(customer: str) -> str:
        """Asks another agent."""
        return inner.run(state={"customer": customer}).check().state["account"]["customer"]

    assert step(write, host, named(asks)).check().state["account"] == "Ada"


def test_the_lock_is_free_while_a_run_is_waited_for(write, host):
    """Another thread of the program does something that the tool waits for."""
    asked, done = threading.Event(), threading.Event()
    threading.Thread(target=lambda: (asked.wait(60), done.set()), daemon=True).start()

    def waits(customer: str) -> bool:
        """Waits."""
        asked.set()
        return done.wait(60)

    assert step(write, host, named(waits)).check().state["account"] is True


def test_a_function_is_there_only_where_it_is_handed_in(write, host):
    with pytest.raises(LoadError, match="there is no tool `lookup_account`"):
        Agent.from_yaml(write(TOOL_STEP), host=host)


def test_agents_that_are_called_by_name_have_no_functions(write, host):
    write(
        'name: other\nversion: "1.0"\nstart: a\nglobal_tools: [lookup_account]\nnodes:\n'
        "  a: {type: llm, prompt: hi, tools: [lookup_account], next: done}\n  done: {type: end, output: x}\n",
        "agents/other/graph.yaml",
    )
    file = write(
        'name: caller\nversion: "1.0"\nstart: a\nnodes:\n  a: {type: agent, agent: other, prompt: hi, next: done}\n'
        '  done: {type: end, output: "{{output}}"}\n',
        "agents/caller/graph.yaml",
    )
    with pytest.raises(LoadError, match="lookup_account"):
        Agent.from_yaml(file, host=host, tools=[lookup_account])


class Like:
    """A tool as AgentLoom has them."""

    name = "lookup_account"
    description = "Finds."
    parameters_schema = {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}

    async def execute(self, **given):
        return given["customer"].upper()


class LikeRegistry:
    def __init__(self):
        self.tool = Like()

    def list(self):
        return [self.tool]

    def get(self, name):
        assert name == "lookup_account"
        return self.tool


def test_a_registry_of_agentloom_is_taken(write, host):
    agent = Agent.from_yaml(write(TOOL_STEP), host=host, tool_registry=LikeRegistry())
    assert agent.run().check().state["account"] == "ADA"
