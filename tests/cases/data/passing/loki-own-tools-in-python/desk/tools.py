import os
from typing import List, Literal, Optional

RATES = {"book": 200, "pen": 15}


def price(item: Literal["book", "pen"], count: int = 1, extras: Optional[List[str]] = None) -> str:
    """Say what something costs.

    Args:
        item: The thing that is bought,
            in the singular
        count: How many
        extras (list): What is added
    """
    total = RATES[item] * count + 10 * len(extras or [])
    return f"{total} {os.environ['LLM_AGENT_VAR_CURRENCY']}"


def notes():
    """Return the notes"""
    return {"open": ["call Åse"], "agent": os.environ["LLM_AGENT_NAME"]}


def unlisted():
    """Not among the tools of the node"""


def _private():
    return RATES
