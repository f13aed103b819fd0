import numpy as np
from langchain_core.tools import tool

@tool
def add(a: float, b: float) -> float:
    """Add."""
    return float(np.add(a, b))
