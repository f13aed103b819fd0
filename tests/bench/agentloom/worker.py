"""The Python sides of `hotcell-bench agentloom`: runs one workflow for each line and answers with its seconds.

`side` is `agentloom`, or `hotcell` for hotcell's own package in this process; the tool is the same Python function in both.
"""

import asyncio
import json
import sys
import time


def measure(text: str) -> dict:
    return {"upper": text.upper(), "length": len(text)}


class AgentLoom:
    def __init__(self, path):
        from agentloom.core.engine import WorkflowEngine
        from agentloom.core.parser import WorkflowParser
        from agentloom.tools.decorator import tool
        from agentloom.tools.registry import ToolRegistry

        async def measured(text: str) -> dict:
            return measure(text)

        self.registry = ToolRegistry()
        self.registry.register(tool(name="measure", description="Measures a text")(measured))
        self.engine, self.workflow = WorkflowEngine, WorkflowParser.from_yaml(path)

    def run(self):
        async def timed():
            begun = time.perf_counter()
            result = await self.engine(self.workflow, tool_registry=self.registry).run()
            return time.perf_counter() - begun, result.status.value == "success", result.final_state

        return asyncio.run(timed())


class Hotcell:
    host = None

    def __init__(self, path):
        from hotcell import Agent, Host, Tool

        Hotcell.host = Hotcell.host or Host(isolated=True)
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        tool = Tool("measure", "Measures a text", schema, measure)
        self.agent = Agent.from_yaml(path, host=Hotcell.host, tools=[tool])

    def run(self):
        begun = time.perf_counter()
        run = self.agent.run()
        return time.perf_counter() - begun, run.status == "completed", run.state


SIDES = {"agentloom": AgentLoom, "hotcell": Hotcell}
loaded = {}


def main() -> None:
    for line in sys.stdin:
        wanted = json.loads(line)
        key = wanted["side"], wanted["path"]
        if key not in loaded:
            loaded[key] = SIDES[wanted["side"]](wanted["path"])
        seconds, is_done, state = loaded[key].run()
        if not is_done or state.get("last") != wanted["last"]:
            raise RuntimeError(f"it came to {state}")
        print(json.dumps(seconds), flush=True)


main()
