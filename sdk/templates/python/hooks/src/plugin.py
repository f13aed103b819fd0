"""A hook in Python."""

from typing import Any

from hotcell_plugin import config, hook, log, proceed, refuse


@hook("before-tool-call")
def check(event: dict[str, Any]):
    """Refuses the tool that the setting `refuse` names."""
    log.info(f"the tool {event['tool']} is called")
    if event["tool"] == config.get("refuse"):
        return refuse(f"the tool `{event['tool']}` must not be called here")
    return proceed()
