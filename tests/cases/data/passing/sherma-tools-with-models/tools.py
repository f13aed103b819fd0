from typing import Literal, Optional

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.tools import BaseTool, StructuredTool, tool
from pydantic import BaseModel, Field


class Reservation(BaseModel):
    """What to reserve."""

    guests: int = Field(description="How many come", ge=1, le=8)
    room: Literal["inside", "garden"] = "inside"
    note: Optional[str] = None


@tool(args_schema=Reservation)
def reserve(guests: int, room: str = "garden", note: Optional[str] = None) -> str:
    """Reserve a table."""
    return f"{guests} guests, {room}, {note}"


class Item(BaseModel):
    name: str
    count: int = 1


class Order(BaseModel):
    items: list[Item] = Field(min_length=1)


class _OrderTool(BaseTool):
    name: str = "order"
    description: str = "Order dishes"
    unit: str = Field(default="pieces")

    def _run(self, order: Order, run_manager: Optional[CallbackManagerForToolRun] = None) -> str:
        return "; ".join(f"{item.count} {self.unit} of {item.name}" for item in order.items)


order = _OrderTool()


def _total(prices: list[float]) -> str:
    return f"{sum(prices):.2f}"


total = StructuredTool.from_function(func=_total, name="total", description="Add prices")
