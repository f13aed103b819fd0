"""A graph that measures texts, for a server of LangGraph."""

import time
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    text: str
    seen: list
    length: int


def measure(state):
    text = state["text"]
    if text == "ask":
        return {"text": interrupt("which one?")}
    if text == "fail":
        raise ValueError("no such text")
    if text == "slow":
        time.sleep(1)
    return {"length": len(text), "seen": [*state.get("seen", []), text]}


graph = StateGraph(State).add_node(measure).add_edge(START, "measure").add_edge("measure", END).compile()
