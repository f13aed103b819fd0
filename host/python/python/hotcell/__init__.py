"""hotcell for Python programs: runs declarative agent graphs, with everything that strangers wrote sealed.

    from hotcell import Agent

    agent = Agent.from_yaml("agents/customer_support.yaml")
    result = await agent.invoke("My bill seems wrong")

This is the package for programs that *run* agents. Tools that are sealed are written with `hotcell_plugin` (`hotcell plugin new --lang
python`).
"""

from ._hotcell import VERSION as __version__
from .agent import Agent, AgentResult, Conversation, Loop, ToolInfo, check
from .errors import (
    Diagnostic,
    HotcellError,
    InputError,
    LoadError,
    Place,
    RunError,
    RunFailed,
    RunInterrupted,
    RunWaiting,
)
from .host import Host, ProviderGateway
from .runs import Failure, Question, Run, RunSummary
from .streams import Event, Stream
from .tools import Tool, ToolRegistry, tool

__all__ = [
    "Agent",
    "AgentResult",
    "Conversation",
    "Diagnostic",
    "Event",
    "Failure",
    "Host",
    "HotcellError",
    "InputError",
    "LoadError",
    "Loop",
    "Place",
    "ProviderGateway",
    "Question",
    "Run",
    "RunError",
    "RunFailed",
    "RunInterrupted",
    "RunSummary",
    "RunWaiting",
    "Stream",
    "Tool",
    "ToolInfo",
    "ToolRegistry",
    "__version__",
    "check",
    "tool",
]
