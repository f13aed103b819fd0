"""A connector in Python."""

from dataclasses import dataclass
from typing import Any

from hotcell_plugin import InvalidInput, Request, accepted, connector, http, receive


@dataclass
class Config:
    """How the author of the graph sets the connector up.

    Attributes:
        url: Where to post to.
    """

    url: str


@connector(modes=["sync", "callback"])
def send(request: Request[Config]) -> Any:
    """Posts messages to a server."""
    message = dict(request.input)
    if request.callback_url is not None:
        message["callback"] = {"url": request.callback_url, "session": request.session}
    response = http.post(request.config.url, json=message).success()
    return response.json() if request.callback_url is None else accepted()


@receive
def answer(request: Request[Config], body: Any) -> Any:
    """Unpacks what came by the callback."""
    if not isinstance(body, dict) or "answer" not in body:
        raise InvalidInput("the server sent no `answer`")
    return body["answer"]
