"""Agents as the AgentLoom document calls them: `from_yaml`, `invoke`, a typed reply, conversation, cost, iterations."""

import asyncio
import dataclasses
import json
import sys

import pydantic
import pytest
from conftest import DESK, TOOL_STEP, lookup_account

import hotcell
from hotcell import Agent, Conversation, InputError, LoadError, RunFailed, ToolRegistry


def desk(write, host, text=DESK, **given):
    return Agent.from_yaml(write(text), host=host, tools=[lookup_account], **given)


def test_agent_loads_from_yaml(write, host):
    agent = desk(write, host)
    assert (agent.name, agent.language, agent.warnings) == ("desk", "agentloom", [])
    assert agent.description == "Resolves billing questions."
    [loop] = agent.loops
    assert (loop.max_requests, loop.output_schema) == (4, None)
    [tool] = loop.tools
    assert (tool.name, tool.kind, tool.sealed, tool.description) == (
        "lookup_account",
        "function",
        False,
        "Finds an account.",
    )


def test_agent_invoke_runs_tool_call_loop(write, host, model):
    model.replies = [{"lookup_account": {"customer": "Ada"}}, "You owe 12.50."]
    result = asyncio.run(desk(write, host).invoke(user_message="My bill seems wrong", conversation=None))
    assert (result.reply, result.iterations, result.cost_usd) == ("You owe 12.50.", 2, 0.0)
    assert [message["role"] for message in result.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    answer = model.requests[1]["messages"][-1]
    assert json.loads(answer["content"]) == {"customer": "Ada", "balance": 12.5}
    assert result.run.status == "completed"
    assert result.run.usage["model_requests"] == 2
    assert "unsealed:lookup_account" in result.run.used_by


def test_a_conversation_goes_on(write, host, model):
    model.replies = ["Hi.", "Bo."]
    agent = desk(write, host)
    first = agent.invoke_sync("I am Bo")
    kept = json.loads(json.dumps(first.conversation.messages))
    second = agent.invoke_sync("Who am I?", Conversation(kept))
    assert second.reply == "Bo."
    assert len(second.conversation.messages) == 4
    assert [one["content"] for one in model.requests[1]["messages"][1:]] == ["I am Bo", "Hi.", "Who am I?"]
    assert len(first.conversation.messages) == 2


def test_what_is_no_message_is_refused_before_anything_is_asked(write, host, model):
    agent = desk(write, host)
    for message in (None, 3, ["hello"]):
        with pytest.raises(TypeError, match="`user_message` must be a text"):
            agent.invoke_sync(message)
    for conversation in ({"messages": []}, [], "hello"):
        with pytest.raises(TypeError, match=r"must be a `Conversation`, not `\w+`"):
            agent.invoke_sync("hello", conversation)
    with pytest.raises(TypeError, match="`prompt` must be a text, not `int`"):
        agent.run(3)
    with pytest.raises(InputError, match="`state` cannot be written as JSON"):
        agent.run(state={"conversation": object()})
    with pytest.raises(InputError, match="`values` cannot be written as JSON"):
        agent.run(values={"n": float("nan")})
    assert model.requests == []


def test_agent_max_iterations_enforced(write, host, model):
    model.replies = [{"lookup_account": {"customer": "Ada"}}] * 4
    with pytest.raises(RunFailed, match="`max_iterations`") as raised:
        desk(write, host).invoke_sync("again and again")
    assert raised.value.run.status == "failed"
    assert len(model.requests) == 4


def test_agent_tool_registry_scoping_blocks_other_tools(write, host, model):
    called = []

    def delete_everything() -> str:
        """Deletes everything."""
        called.append(1)
        return "done"

    model.replies = [{"delete_everything": {}}, "I could not."]
    registry = ToolRegistry([lookup_account, delete_everything])
    agent = Agent.from_yaml(write(DESK), host=host, tool_registry=registry)
    assert agent.invoke_sync("please").reply == "I could not."
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["lookup_account"]
    assert "delete_everything" in model.requests[1]["messages"][-1]["content"]
    assert called == []


class SupportReply(pydantic.BaseModel):
    answer: str
    refund: float = 0.0


@dataclasses.dataclass
class Plain:
    answer: str


TYPED = DESK + "output_schema: {type: pydantic, model: examples.schemas.SupportReply}\n"


def test_agent_output_schema_validates_reply(write, host, model):
    agent = desk(write, host, TYPED, reply_type=SupportReply)
    model.replies = ['{"answer": "no", "refund": 3}', '{"refund": "much"}']
    reply = agent.invoke_sync("hello").reply
    assert reply == SupportReply(answer="no", refund=3.0)
    with pytest.raises(RunFailed, match="answer"):
        agent.invoke_sync("hello")


def test_a_reply_becomes_a_dataclass(write, host, model):
    text = DESK + "output_schema: {type: pydantic, model: app.Plain}\n"
    model.replies = ['{"answer": "yes"}']
    assert desk(write, host, text, reply_type=Plain).invoke_sync("hello").reply == Plain("yes")


def test_types_are_handed_in_by_import_path(write, host, model):
    model.replies = ['{"answer": "yes"}']
    agent = desk(write, host, TYPED, schemas={"examples.schemas.SupportReply": SupportReply})
    assert agent.invoke_sync("hello").reply == {"answer": "yes"}


def test_a_file_imports_no_module_by_itself(write, host, tmp_path, monkeypatch):
    write("raise SystemExit('imported')", "examples/schemas.py")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LoadError, match="`examples/schemas.py` cannot be loaded"):
        desk(write, host, TYPED)
    # It was described in a cell.
    assert "examples.schemas" not in sys.modules


def test_a_reply_type_needs_a_schema(write, host):
    with pytest.raises(TypeError, match="has no `output_schema`"):
        desk(write, host, reply_type=SupportReply)


def test_agent_constraint_max_cost_aborts_when_exceeded(write, host, model):
    text = DESK.replace("model: anything", "model: claude-sonnet-4-5") + "constraints: {max_cost_usd: 0.0000001}\n"
    agent = desk(write, host, text)
    with pytest.raises(RunFailed, match="`max_cost_usd`"):
        agent.invoke_sync("hello")


def test_agent_forbidden_patterns_marks_run_failed(write, host, model):
    text = DESK + 'constraints: {forbidden_patterns: ["As a language model"]}\n'
    model.replies = ["As a language model I cannot."]
    with pytest.raises(RunFailed, match="As a language model"):
        desk(write, host, text).invoke_sync("hello")


def test_nested_agent_as_tool(write, host, model):
    write("name: specialist\nmodel: anything\nsystem_prompt: You know.\n", "specialist.yaml")
    text = DESK.replace("[lookup_account]", "[{name: ask, type: agent, agent: specialist.yaml}]")
    model.replies = [{"ask": {"request": "what?"}}, "forty-two", "It is forty-two."]
    result = desk(write, host, text).invoke_sync("well?")
    assert result.reply == "It is forty-two."
    assert result.run.usage["model_requests"] == 3


def test_agent_step_in_workflow_persists_conversation(write, host, model):
    write(DESK, "desk.yaml")
    text = """\
name: flow
state: {message: hello}
steps:
  - {id: handle, type: agent, agent: desk.yaml, input: state.message, conversation: state.chat, output: state.chat}
"""
    model.replies = ["Hi."]
    run = Agent.from_yaml(write(text, "flow.yaml"), host=host, tools=[lookup_account]).run().check()
    assert run.state["chat"]["reply"] == "Hi."
    assert len(run.state["chat"]["conversation"]["messages"]) == 2


def test_only_definitions_are_invoked(write, host):
    agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[lookup_account])
    with pytest.raises(hotcell.HotcellError, match="not an agent definition"):
        agent.invoke_sync("hello")


def test_findings_have_places(write, host):
    file = write("name: broken\nsteps:\n  - {id: a, type: tool, tool_name: nowhere, tool_args: {}}\n")
    with pytest.raises(LoadError) as raised:
        Agent.from_yaml(file, host=host)
    [found] = [one for one in raised.value.diagnostics if one.severity == "error"]
    assert "nowhere" in found.message and found.help
    assert (found.place.line, found.place.file) == (3, str(file))
    assert str(raised.value).startswith("error")
    assert hotcell.check(file, host=host) == raised.value.diagnostics


def test_a_missing_file_is_a_load_error(host, tmp_path):
    with pytest.raises(LoadError, match="nothing.yaml"):
        Agent.from_yaml(tmp_path / "nothing.yaml", host=host)


def test_a_model_of_a_file_of_the_project_is_described_in_a_cell(write, host, model):
    write(
        "from pydantic import BaseModel, Field\n\n\n"
        "class SupportReply(BaseModel):\n    answer: str\n    refund_cents: int = Field(ge=0)\n",
        "examples/schemas.py",
    )
    agent = desk(write, host, DESK + "output_schema: {type: pydantic, model: examples.schemas.SupportReply}\n")
    [loop] = agent.loops
    assert loop.output_schema["required"] == ["answer", "refund_cents"]
    model.replies = ['{"answer": "Sorry", "refund_cents": 5}', '{"answer": "Sorry", "refund_cents": -5}']
    assert agent.invoke_sync("hello").reply == {"answer": "Sorry", "refund_cents": 5}
    with pytest.raises(RunFailed, match="refund_cents"):
        agent.invoke_sync("hello")
