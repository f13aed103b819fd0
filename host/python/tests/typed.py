"""Not run: mypy reads it. What is documented as typed has these types."""

from dataclasses import dataclass
from typing import assert_type

from hotcell import Agent, AgentResult, Conversation, Run, Stream, Tool, ToolRegistry, tool


@dataclass
class Reply:
    answer: str


@tool
def lookup(customer: str) -> str:
    return customer


@tool(name="other")
def renamed(customer: str) -> str:
    return customer


async def use() -> None:
    agent: Agent[Reply] = Agent.from_yaml("a.yaml", reply_type=Reply, tool_registry=ToolRegistry([lookup]))
    result = await agent.invoke("hello", conversation=Conversation())
    assert_type(result, AgentResult[Reply])
    assert_type(result.reply, Reply)
    assert_type(result.reply.answer, str)
    assert_type(result.cost_usd, float)
    assert_type(result.iterations, int)
    assert_type(agent.run("x", values={"n": 1}), Run)
    assert_type(agent.stream("x"), Stream)
    assert_type(lookup, Tool)
    assert_type(renamed, Tool)
    async for event in agent.stream("x"):
        assert_type(event["event"], object)  # type: ignore[assert-type]
