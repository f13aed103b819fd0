from leafmesh import global_tool, tool


@global_tool(name="lookup", description="Looks an article up", category="data")
def find(article: str, places: list[str] = ()) -> dict:
    """Not told.

    Args:
        article: its name
    """
    return {"id": f"A-{len(article)}"}


@tool(name="audit", description="Everything that was looked up")
def audit() -> list:
    return []
