from leafmesh import global_tool


@global_tool(name="cancel", description="Cancels an order", requires_confirmation=True)
def cancel(order: int) -> dict:
    return {"cancelled": order}


@global_tool(name="wipe", description="Forgets everything", allowed_agents=["janitor"])
def wipe() -> dict:
    return {"wiped": True}
