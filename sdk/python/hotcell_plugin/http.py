"""A small HTTP client. Capability `http`: `http = ["https://api.example.org"]` under `[capabilities]` in plugin.toml."""

import json as _json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from . import _host
from .errors import InvalidInput, PluginError, Unavailable


@dataclass
class Response:
    """What a server answered."""

    status: int
    #: Names in lower case.
    headers: dict[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300

    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body, read as JSON."""
        try:
            return _json.loads(self.body)
        except ValueError as error:
            raise PluginError(f"the answer is not JSON: {error}") from None

    def success(self) -> "Response":
        """The answer itself where it is `ok`; otherwise an error: `Unavailable` where a later call may work."""
        if self.ok:
            return self
        start = self.text().strip()[:200]
        message = f"the server answered with the status {self.status}{': ' if start else ''}{start}"
        later = self.status in (408, 429) or self.status >= 500
        raise (Unavailable if later else PluginError)(message, status=str(self.status))


def request(
    method: str,
    url: str,
    *,
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    body: bytes | str = b"",
    json: Any = None,
) -> Response:
    """Sends a request and waits for the whole answer, whatever its status. `json` is sent in the place of `body`.

    Raises `Denied` where the server was not granted and `Unavailable` where it is not reached.
    """
    sent = dict(headers or {})
    if json is not None:
        sent.setdefault("content-type", "application/json")
        body = _host.to_json(json, "the body of the request")
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query)
    if not url.lower().startswith(("https://", "http://")):
        raise InvalidInput(f"`{url}` is not an address to send to: it begins with neither `https://` nor `http://`")
    content = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    return _host.interface("http").send(method.upper(), url, sent, content)


def get(url: str, **options: Any) -> Response:
    """Reads `url`; further arguments are those of `request`."""
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    """Sends something to `url`; further arguments are those of `request`."""
    return request("POST", url, **options)
