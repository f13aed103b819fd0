"""The other side of `hotcell-bench sherma`: does one piece of work for each line and answers with its seconds."""

import asyncio
import itertools
import json
import sys
import time

from langchain_core.messages import HumanMessage
from sherma import DeclarativeAgent
from sherma.langgraph.declarative.cel_engine import CelEngine

graphs = {}
threads = itertools.count()


async def run(path: str, name: str, expected: int) -> float:
    if path not in graphs:
        graphs[path] = await DeclarativeAgent(id=name, version="1.0.0", yaml_path=path).get_graph()
    config = {"recursion_limit": 10_000, "configurable": {"thread_id": str(next(threads))}}
    begun = time.perf_counter()
    state = await graphs[path].ainvoke({"n": 0}, config=config)
    elapsed = time.perf_counter() - begun
    if state["n"] != expected:
        raise RuntimeError(f"it came to {state['n']}, not {expected}")
    return elapsed


def cel(expression: str, messages: int, times: int) -> float:
    state = {"c": 1, "messages": [HumanMessage(content=f"message {number}") for number in range(messages)]}
    engine = CelEngine()
    begun = time.perf_counter()
    for _ in range(times):
        value = engine.evaluate(expression, state)
    elapsed = time.perf_counter() - begun
    if value != messages + 1:
        raise RuntimeError(f"it came to {value}, not {messages + 1}")
    return elapsed / times


def main() -> None:
    loop = asyncio.new_event_loop()
    for line in sys.stdin:
        wanted = json.loads(line)
        if "path" in wanted:
            seconds = loop.run_until_complete(run(wanted["path"], wanted["agent"], wanted["expected"]))
        else:
            seconds = cel(wanted["expression"], wanted["messages"], wanted["times"])
        print(json.dumps(seconds), flush=True)


main()
