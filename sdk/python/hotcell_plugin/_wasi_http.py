"""HTTP over the bindings of `wasi:http`. Imported only while a plugin that asks for `http` is built."""

from typing import Any
from urllib.parse import urlsplit

from componentize_py_types import Err, Ok
from wit_world.imports import outgoing_handler, streams
from wit_world.imports import wasi_http_types as types

from .errors import Denied, InvalidInput, PluginError, Unavailable
from .http import Response

#: Bytes that one write may have.
_WRITTEN = 4096
_READ = 65536
_METHODS = {
    "GET": types.Method_Get,
    "HEAD": types.Method_Head,
    "POST": types.Method_Post,
    "PUT": types.Method_Put,
    "DELETE": types.Method_Delete,
    "CONNECT": types.Method_Connect,
    "OPTIONS": types.Method_Options,
    "TRACE": types.Method_Trace,
    "PATCH": types.Method_Patch,
}
_LATER = (
    types.ErrorCode_DnsTimeout,
    types.ErrorCode_DnsError,
    types.ErrorCode_DestinationNotFound,
    types.ErrorCode_DestinationUnavailable,
    types.ErrorCode_ConnectionRefused,
    types.ErrorCode_ConnectionTerminated,
    types.ErrorCode_ConnectionTimeout,
    types.ErrorCode_ConnectionReadTimeout,
    types.ErrorCode_ConnectionWriteTimeout,
    types.ErrorCode_HttpResponseTimeout,
    types.ErrorCode_HttpResponseIncomplete,
)
_WRONG = (types.ErrorCode_HttpRequestUriInvalid, types.ErrorCode_HttpRequestMethodInvalid)


def send(method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
    """Sends a request and reads the whole answer."""
    if body and not any(name.lower() == "content-length" for name in headers):
        # Without it the body is sent in chunks, which not every server takes.
        headers = {**headers, "content-length": str(len(body))}
    try:
        waiting = _hand_over(_outgoing(method, url, headers), body)
        with waiting:
            with waiting.subscribe() as pollable:
                pollable.block()
            match waiting.get():
                case Ok(Ok(response)):
                    with response:
                        return _read(response)
                case Ok(Err(code)):
                    raise _failed(url, code)
        raise PluginError(f"the host gave no answer of `{url}`")
    except Err as error:
        raise _failed(url, error.value) from None


def _outgoing(method: str, url: str, headers: dict[str, str]) -> Any:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise InvalidInput(f"`{parts.hostname}`: a user and password belong into the header `authorization`")
    fields = [(name, value.encode("utf-8")) for name, value in headers.items()]
    try:
        request = types.OutgoingRequest(types.Fields.from_list(fields))
    except Err as error:
        raise InvalidInput(f"a header of the request to `{url}` cannot be sent: {type(error.value).__name__}") from None
    kind = _METHODS.get(method)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    steps = (
        ("method", request.set_method, kind() if kind is not None else types.Method_Other(method)),
        ("scheme", request.set_scheme, types.Scheme_Https() if parts.scheme == "https" else types.Scheme_Http()),
        ("server", request.set_authority, parts.netloc),
        ("path", request.set_path_with_query, path),
    )
    for what, step, value in steps:
        try:
            step(value)
        except Err:
            raise InvalidInput(f"the {what} of the request to `{url}` is none") from None
    return request


def _hand_over(request: Any, body: bytes) -> Any:
    outgoing = request.body()
    waiting = outgoing_handler.handle(request, None)
    if body:
        with outgoing.write() as stream:
            for start in range(0, len(body), _WRITTEN):
                stream.blocking_write_and_flush(body[start : start + _WRITTEN])
    types.OutgoingBody.finish(outgoing, None)
    return waiting


def _read(response: Any) -> Response:
    with response.headers() as fields:
        headers = {name.lower(): value.decode("utf-8", "replace") for name, value in fields.entries()}
    parts = []
    with response.consume() as incoming, incoming.stream() as stream:
        while True:
            try:
                parts.append(stream.blocking_read(_READ))
            except Err as error:
                if isinstance(error.value, streams.StreamError_Closed):
                    break
                raise
    return Response(response.status(), headers, b"".join(parts))


def _failed(url: str, code: Any) -> PluginError:
    if isinstance(code, types.ErrorCode_HttpRequestDenied):
        return Denied(f"the request to `{url}` was not granted (capability `http`)")
    if isinstance(code, streams.StreamError_LastOperationFailed):
        return Unavailable(f"the connection to `{url}` failed: {code.value.to_debug_string()}")
    if isinstance(code, streams.StreamError_Closed):
        return Unavailable(f"the connection to `{url}` ended early")
    words = type(code).__name__.removeprefix("ErrorCode_")
    detail = getattr(code, "value", None)
    message = f"the request to `{url}` failed: {words}{'' if detail is None else f' ({detail})'}"
    if isinstance(code, _LATER):
        return Unavailable(message)
    return InvalidInput(message) if isinstance(code, _WRONG) else PluginError(message)
