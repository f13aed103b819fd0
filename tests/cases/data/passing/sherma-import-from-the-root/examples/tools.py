"""Tools that the agents of the examples share."""

from __future__ import annotations

from langchain_core.tools import tool

from examples.rates import RATES


@tool
def get_price(item: str) -> str:
    """Get the price of an item."""
    return f"{item}: {RATES[item]}"
