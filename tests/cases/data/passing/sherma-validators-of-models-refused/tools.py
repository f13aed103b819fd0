from langchain_core.tools import tool
from pydantic import BaseModel, field_validator


class Reservation(BaseModel):
    guests: int

    @field_validator("guests")
    @classmethod
    def even(cls, value):
        if value % 2:
            raise ValueError("only even numbers")
        return value


@tool(args_schema=Reservation)
def reserve(guests: int) -> str:
    """Reserve a table."""
    return f"{guests} guests"
