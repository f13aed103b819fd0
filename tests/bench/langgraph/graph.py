"""The graph of three nodes that `hotcell-bench serve` runs, for LangGraph's own server."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    text: str
    upper: str
    output: str


def begin(state: State) -> State:
    return {"text": state["text"]}


def tool(state: State) -> State:
    return {"upper": state["text"].upper()}


def end(state: State) -> State:
    return {"output": state["upper"]}


builder = StateGraph(State)
for node in (begin, tool, end):
    builder.add_node(node.__name__, node)
builder.add_edge(START, "begin")
builder.add_edge("begin", "tool")
builder.add_edge("tool", "end")
builder.add_edge("end", END)
graph = builder.compile()
