"""The model of the run. Capability `llm`; calls count against the run's budget."""

import json
from typing import Any

from . import _host


def complete(prompt: str, *, system: str | None = None, **request: Any) -> str:
    """Asks the model once and gives the text of its reply.

    Further arguments go into the request as they are: `model`, `temperature`, `max_tokens`.
    """
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages.append({"role": "user", "content": prompt})
    return send({"messages": messages, **request})["text"]


def send(request: dict[str, Any]) -> dict[str, Any]:
    """Sends a whole request: `messages` and, if wanted, `model`, `temperature`, `max_tokens` and `schema`.

    The reply has `text`, `model` and `usage`, and `value` where there was a `schema`.
    """
    with _host.errors():
        return json.loads(_host.interface("llm").complete(_host.to_json(request, "the request to the model")))
