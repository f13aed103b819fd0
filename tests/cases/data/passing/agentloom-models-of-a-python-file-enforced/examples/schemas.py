from enum import Enum
from typing import Literal, Optional

from pydantic import BaseModel, Field


class Mood(str, Enum):
    calm = "calm"
    cross = "cross"


class Item(BaseModel):
    sku: str
    count: int = 1


class SupportReply(BaseModel):
    """What the desk answers."""

    answer: str = Field(description="To the customer")
    refund_cents: int = Field(ge=0)
    mood: Mood = Mood.calm
    kind: Literal["billing", "account"] = "billing"
    items: list[Item] = []
    note: Optional[str] = None
