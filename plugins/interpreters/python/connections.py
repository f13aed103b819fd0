"""HTTP without sockets: the connections of `http.client`, and so of `urllib.request` and `xmlrpc.client`, over the host.

The library stays as it is. Below it lies a wire that collects what is written until it is a whole request, has the host
send that, and gives the answer to read as if it had come over a socket. What may be asked, the host decides.
"""

import http.client
import io
import math
import socket
import sys

from wit_world.imports import http as host

# Names of headers that only frame the body on the wire; the host frames it anew.
_FRAMING = ("content-length", "transfer-encoding")


def install() -> None:
    """Gives `http.client` these connections. What asks it for `https` when it is imported has to come later."""
    if "urllib.request" in sys.modules:
        raise RuntimeError("`urllib.request` was imported before `http.client` could do `https`")
    http.client.HTTPConnection.connect = _connect
    http.client.HTTPSConnection = HTTPSConnection
    http.client.__all__.append("HTTPSConnection")
    # Certificates are the host's business, so there is no context to set up.
    http.client._create_https_context = lambda http_version: None


def _connect(connection: http.client.HTTPConnection) -> None:
    """`HTTPConnection.connect`: nothing is reached before there is a request to ask for."""
    if connection._tunnel_host is not None:
        raise OSError("a script reaches servers directly and cannot go through a proxy")
    scheme = "https" if isinstance(connection, HTTPSConnection) else "http"
    name = f"[{connection.host}]" if ":" in connection.host else connection.host
    timeout = connection.timeout
    if timeout is socket._GLOBAL_DEFAULT_TIMEOUT:
        timeout = socket.getdefaulttimeout()
    connection.sock = _Wire(f"{scheme}://{name}:{connection.port}", timeout)


class HTTPSConnection(http.client.HTTPConnection):
    """A connection of `https`. The host sets it up, and trusts the certificate authorities of the web."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, host, port=None, *, timeout=socket._GLOBAL_DEFAULT_TIMEOUT, source_address=None, context=None, blocksize=8192):
        if context is not None:
            raise ValueError("the host checks certificates by itself; a context of the script's cannot change how")
        super().__init__(host, port, timeout, source_address, blocksize)


class _Wire:
    """What a connection has in the place of a socket: requests are written to it, and answers read from it, in turn."""

    def __init__(self, origin: str, timeout: float | None) -> None:
        self._origin = origin
        self._timeout = timeout
        self._written = bytearray()
        # The answer as it would have come, or why none is to be read.
        self._answer: bytes | TimeoutError = b""

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        return self._timeout

    def sendall(self, data) -> None:
        # Text and iterables are a `TypeError` here, by which `http.client` tells them from bytes.
        self._written += memoryview(data)
        request = _whole_request(self._written)
        if request is None:
            return
        self._written = bytearray()
        method, target, headers, body = request
        if not target.startswith("/"):
            raise OSError(f"a script reaches servers directly and cannot have a proxy ask for {target!r}")
        try:
            self._answer = _ask(method, self._origin + target, headers, body, self._timeout)
        except TimeoutError as error:
            # A server that is slow to answer is noticed by whoever reads.
            self._answer = error

    def makefile(self, mode: str) -> io.BufferedReader:
        answer, self._answer = self._answer, b""
        return io.BufferedReader(_Overdue(answer) if isinstance(answer, TimeoutError) else io.BytesIO(answer))

    def close(self) -> None:
        """Nothing is open between a request and its answer."""


class _Overdue(io.RawIOBase):
    """An answer that has not come in time."""

    def __init__(self, error: TimeoutError) -> None:
        self._error = error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        raise self._error


def _whole_request(written: bytearray) -> tuple[str, str, list[tuple[str, bytes]], bytes] | None:
    """Method, target, headers and body of what was written; none while something is missing."""
    end = written.find(b"\r\n\r\n")
    if end < 0:
        return None
    # A value of several lines is one value.
    head = bytes(written[:end]).replace(b"\r\n\t", b" ").replace(b"\r\n ", b" ").split(b"\r\n")
    method, target, _ = head[0].decode("ascii").split(" ", 2)
    headers = []
    length = 0
    chunked = False
    for line in head[1:]:
        name, _, value = line.partition(b":")
        name, value = name.decode("ascii"), value.strip()
        if name.lower() == "content-length":
            length = int(value)
        elif name.lower() == "transfer-encoding":
            chunked = value.lower() == b"chunked"
            if not chunked:
                raise OSError(f"a request cannot be sent as {value.decode('latin-1')!r}, only whole or chunked")
        else:
            headers.append((name, value))
    rest = written[end + 4 :]
    if chunked:
        body = _joined(rest)
        return None if body is None else (method, target, headers, body)
    return None if len(rest) < length else (method, target, headers, bytes(rest[:length]))


def _joined(chunks: bytearray) -> bytes | None:
    """The body of which these are the chunks; none while the last is missing."""
    if not chunks.endswith(b"0\r\n\r\n"):
        return None
    body = bytearray()
    at = 0
    while (line := chunks.find(b"\r\n", at)) >= 0:
        size = int(bytes(chunks[at:line]).split(b";")[0], 16)
        if size == 0:
            return bytes(body)
        body += chunks[line + 2 : line + 2 + size]
        at = line + 2 + size + 2
    return None


def _ask(method: str, url: str, headers: list[tuple[str, bytes]], body: bytes, timeout: float | None) -> bytes:
    """Has the host send a request, and gives the answer as it stands on a wire."""
    milliseconds = None if timeout is None else max(0, math.ceil(timeout * 1000))
    host.start(host.Request(method, url, headers, body, milliseconds))
    # One request at a time is under way, so it is this one that is done.
    _, outcome = host.wait(None)
    match outcome:
        case host.Outcome_Answered(answer):
            return _as_written(answer, with_body=method != "HEAD")
        case host.Outcome_Denied(reason):
            raise PermissionError(reason)
        case host.Outcome_TimedOut(reason):
            raise TimeoutError(reason)
        case host.Outcome_Invalid(reason):
            raise ValueError(reason)
        case host.Outcome_Failed(reason):
            raise ConnectionError(reason)


def _as_written(answer: host.Response, with_body: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {answer.reason}".encode("latin-1")]
    for name, value in answer.headers:
        # To a question about the headers alone belongs the length that the body would have.
        if not with_body or name not in _FRAMING:
            lines.append(name.encode("ascii") + b": " + value)
    if with_body:
        lines.append(b"content-length: %d" % len(answer.body))
    return b"\r\n".join([*lines, b"", b""]) + answer.body
