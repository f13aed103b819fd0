"""`httpx`, `requests` and `urllib3` for sealed code, as far as tools use them.

The libraries themselves open sockets, which a cell has not. This is one small client under their names: `http.client` writes the
requests, and the host sends them within what is granted. What is not here is an error that names it, never left out in silence.
"""

import base64
import http.client
import json as _json
import urllib.parse

_LIBRARY = __name__.partition(".")[0]
_REDIRECTS = 20


class _Failure(OSError):
    """Whatever can go wrong."""

    def __init__(self, message="", *, request=None, response=None):
        super().__init__(message)
        self.request, self.response = request, response


class _NotSent(_Failure):
    """No answer came."""


class _TooLate(_NotSent):
    """No answer came in time."""


class _Refused(_Failure):
    """The answer has a status that says so."""


class _WrongUse(_Failure, ValueError):
    """The request cannot be sent as it is."""


class Headers:
    """Headers by their names without case; a name that occurs several times has its values joined."""

    def __init__(self, items=()):
        self._items = {}
        self.update(items or {})

    def update(self, items):
        for name, value in items.items() if hasattr(items, "items") else items:
            self[name] = value

    def add(self, name, value):
        self[name] = f"{self[name]}, {value}" if name in self else value

    def __setitem__(self, name, value):
        self._items[str(name).lower()] = (str(name), value.decode("latin-1") if isinstance(value, bytes) else str(value))

    def __getitem__(self, name):
        return self._items[str(name).lower()][1]

    def __delitem__(self, name):
        del self._items[str(name).lower()]

    def __contains__(self, name):
        return str(name).lower() in self._items

    def __iter__(self):
        return (name for name, _ in self._items.values())

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return repr(dict(self.items()))

    def get(self, name, default=None):
        return self[name] if name in self else default

    def setdefault(self, name, value):
        if name not in self:
            self[name] = value
        return self[name]

    def pop(self, name, default=None):
        return self._items.pop(str(name).lower(), (None, default))[1]

    def keys(self):
        return list(self)

    def values(self):
        return [value for _, value in self._items.values()]

    def items(self):
        return list(self._items.values())


class Request:
    def __init__(self, method, url, headers, content):
        self.method, self.url, self.headers, self.content, self.body = method, url, headers, content, content


class Response:
    def __init__(self, request, status, reason, headers, content, history):
        self.request, self.url, self.history = request, request.url, history
        self.status_code = self.status = status
        self.reason = self.reason_phrase = reason
        self.headers, self.content, self.data = headers, content, content

    @property
    def encoding(self):
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.strip().partition("=")
            if name.lower() == "charset":
                return value.strip("\"'")
        return "utf-8"

    @property
    def text(self):
        try:
            return self.content.decode(self.encoding, "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")

    def json(self, **options):
        return _json.loads(self.content, **options)

    @property
    def is_success(self):
        return 200 <= self.status_code < 300

    @property
    def is_error(self):
        return self.status_code >= 400

    @property
    def is_client_error(self):
        return 400 <= self.status_code < 500

    @property
    def is_server_error(self):
        return self.status_code >= 500

    @property
    def is_redirect(self):
        return "location" in self.headers and self.status_code in (301, 302, 303, 307, 308)

    @property
    def ok(self):
        return not self.is_error

    def __bool__(self):
        return self.ok if _LIBRARY == "requests" else True

    def raise_for_status(self):
        if self.is_error:
            kind = "Client" if self.is_client_error else "Server"
            message = f"{kind} error '{self.status_code} {self.reason}' for url '{self.url}'"
            raise _Refused(message, request=self.request, response=self)
        return self

    def read(self):
        return self.content

    def iter_bytes(self, chunk_size=None):
        size = chunk_size or max(1, len(self.content))
        for start in range(0, len(self.content), size):
            yield self.content[start : start + size]

    iter_content = iter_bytes

    def iter_lines(self, **_):
        lines = self.content.splitlines() if _LIBRARY == "requests" else self.text.splitlines()
        yield from lines

    def close(self):
        """The whole answer is there."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<Response [{self.status_code} {self.reason}]>"


class _Timeout:
    """How long an exchange may take: the longest of its parts."""

    def __init__(self, timeout=None, *, connect=None, read=None, write=None, pool=None, total=None):
        parts = [part for part in (_seconds(timeout), connect, read, write, pool, total) if part is not None]
        self.seconds = max(parts) if parts else None


def _seconds(timeout):
    if isinstance(timeout, _Timeout):
        return timeout.seconds
    if isinstance(timeout, (tuple, list)):
        parts = [part for part in timeout if part is not None]
        return max(parts) if parts else None
    return timeout


def _pairs(params):
    if not params:
        return []
    pairs = []
    for name, value in params.items() if hasattr(params, "items") else params:
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None:
                if _LIBRARY == "httpx":
                    pairs.append((name, ""))
                continue
            # httpx writes the words of JSON, requests those of Python.
            pairs.append((name, str(one).lower() if isinstance(one, bool) and _LIBRARY == "httpx" else one))
    return pairs


def _address(url, params):
    if isinstance(params, (str, bytes)):
        added = params.decode() if isinstance(params, bytes) else params
    else:
        added = urllib.parse.urlencode(_pairs(params))
    parts = urllib.parse.urlsplit(str(url))
    query = "&".join(part for part in (parts.query, added) if part)
    path = urllib.parse.quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    return parts._replace(path=path, query=query, fragment="").geturl()


def _body(headers, json, data, content):
    if json is not None:
        headers.setdefault("content-type", "application/json")
        return _json.dumps(json, ensure_ascii=False, separators=(",", ":")).encode()
    data = content if content is not None else data
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    if hasattr(data, "read"):
        read = data.read()
        return read.encode() if isinstance(read, str) else read
    headers.setdefault("content-type", "application/x-www-form-urlencoded")
    return urllib.parse.urlencode(_pairs(data)).encode()


def _send(request, timeout, history):
    parts = urllib.parse.urlsplit(request.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _WrongUse(f"`{request.url}` is not a valid address of a web server", request=request)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, **({} if timeout is None else {"timeout": timeout}))
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = dict(request.headers.items())
    if not any(name.lower() == "accept-encoding" for name in headers):
        headers["accept-encoding"] = "identity"
    try:
        connection.request(request.method, target, request.content, headers)
        answer = connection.getresponse()
        content = answer.read()
    except TimeoutError as error:
        raise _TooLate(str(error) or "no answer came in time", request=request) from None
    except (OSError, http.client.HTTPException) as error:
        raise _NotSent(str(error), request=request) from None
    found = Headers()
    for name, value in answer.getheaders():
        found.add(name, value)
    return Response(request, answer.status, answer.reason, found, content, history)


class _Client:
    """A session: what all of its requests have in common."""

    _follows = _LIBRARY != "httpx"

    def __init__(self, *, base_url="", headers=None, params=None, timeout=None, auth=None, cookies=None, verify=True, follow_redirects=None, **others):
        _no_more(others)
        _checked(verify)
        self.base_url, self.headers, self.params = str(base_url), Headers(headers), dict(params or {})
        self.timeout, self.auth, self.cookies, self.verify = timeout, auth, dict(cookies or {}), verify
        self.follow_redirects = self._follows if follow_redirects is None else follow_redirects

    def request(
        self, method, url, *, params=None, headers=None, json=None, data=None, content=None, auth=None, timeout=None,
        cookies=None, verify=True, follow_redirects=None, allow_redirects=None, stream=False, **others,
    ):
        _no_more(others)
        _checked(verify and self.verify)
        if self.base_url and "://" not in str(url):
            url = self.base_url.rstrip("/") + "/" + str(url).lstrip("/")
        sent = Headers(self.headers.items())
        sent.update(headers or {})
        if isinstance(params, (str, bytes)):
            address = _address(_address(url, self.params), params)
        else:
            address = _address(url, [*_pairs(self.params), *_pairs(params)])
        body = _body(sent, json, data, content)
        auth = auth if auth is not None else self.auth
        if auth is not None:
            if not isinstance(auth, (tuple, list)) or len(auth) != 2:
                raise NotImplementedError(f"`auth` of `{_LIBRARY}` is a name and a password in a sealed cell")
            word = base64.b64encode(":".join(auth).encode()).decode()
            sent["authorization"] = f"Basic {word}"
        jar = {**self.cookies, **(cookies or {})}
        if jar:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in jar.items())
        follow = next((said for said in (follow_redirects, allow_redirects) if said is not None), self.follow_redirects)
        timeout = _seconds(timeout if timeout is not None else self.timeout)
        request, history = Request(method.upper(), address, sent, body), []
        while True:
            response = _send(request, timeout, list(history))
            if not (follow and response.is_redirect):
                return response
            if len(history) == _REDIRECTS:
                raise _NotSent(f"more than {_REDIRECTS} redirects", request=request)
            history.append(response)
            request = _redirected(request, response)

    def get(self, url, params=None, **options):
        return self.request("GET", url, params=params, **options)

    def head(self, url, **options):
        return self.request("HEAD", url, **options)

    def options(self, url, **options):
        return self.request("OPTIONS", url, **options)

    def delete(self, url, **options):
        return self.request("DELETE", url, **options)

    def post(self, url, data=None, **options):
        return self.request("POST", url, data=data, **options)

    def put(self, url, data=None, **options):
        return self.request("PUT", url, data=data, **options)

    def patch(self, url, data=None, **options):
        return self.request("PATCH", url, data=data, **options)

    def close(self):
        """Nothing is open between two requests."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _redirected(request, response):
    url = urllib.parse.urljoin(request.url, response.headers["location"])
    method, content, headers = request.method, request.content, Headers(request.headers.items())
    if response.status_code == 303 and method != "HEAD" or response.status_code in (301, 302) and method == "POST":
        method, content = "GET", None
        headers.pop("content-type")
    if urllib.parse.urlsplit(url)[:2] != urllib.parse.urlsplit(request.url)[:2]:
        # What was meant for one server is for no other.
        headers.pop("authorization")
        headers.pop("cookie")
    return Request(method, url, headers, content)


def _no_more(others):
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise NotImplementedError(f"`{_LIBRARY}` in a sealed cell knows no `{given[0]}`")


def _checked(verify):
    if verify is False:
        raise NotImplementedError("the host checks certificates; `verify=False` cannot change that")


class _AsyncClient(_Client):
    """The same for coroutines. A cell does one thing at a time, so a request is done when it is awaited."""

    async def request(self, method, url, **options):
        return _Client.request(self, method, url, **options)

    async def aclose(self):
        self.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()


class _Pool(_Client):
    """`PoolManager` of urllib3."""

    def __init__(self, num_pools=None, headers=None, *, timeout=None, **others):
        super().__init__(headers=headers, timeout=timeout, **others)

    def request(self, method, url, body=None, fields=None, headers=None, json=None, timeout=None, redirect=True, **others):
        is_query = method.upper() in ("GET", "HEAD", "DELETE", "OPTIONS")
        if fields and not is_query:
            raise NotImplementedError("`fields` of `urllib3` are only sent as a query in a sealed cell; give `body`")
        return super().request(
            method, url, params=fields, content=body, headers=headers, json=json, timeout=timeout,
            follow_redirects=redirect, **others,
        )


def request(method, url, **options):
    with _Client() as client:
        return client.request(method, url, **options)


def get(url, params=None, **options):
    return request("GET", url, params=params, **options)


def head(url, **options):
    return request("HEAD", url, **{"allow_redirects": False, **options} if _LIBRARY == "requests" else options)


def options(url, **options):
    return request("OPTIONS", url, **options)


def delete(url, **options):
    return request("DELETE", url, **options)


def post(url, data=None, **options):
    return request("POST", url, data=data, **options)


def put(url, data=None, **options):
    return request("PUT", url, data=data, **options)


def patch(url, data=None, **options):
    return request("PATCH", url, data=data, **options)


_FAILURES = {
    "httpx": {
        "HTTPError": _Failure, "RequestError": _NotSent, "TransportError": _NotSent, "NetworkError": _NotSent,
        "ConnectError": _NotSent, "ReadError": _NotSent, "TooManyRedirects": _NotSent, "TimeoutException": _TooLate,
        "ConnectTimeout": _TooLate, "ReadTimeout": _TooLate, "HTTPStatusError": _Refused, "InvalidURL": _WrongUse,
        "UnsupportedProtocol": _WrongUse,
    },
    "requests": {
        "RequestException": _Failure, "ConnectionError": _NotSent, "TooManyRedirects": _NotSent, "Timeout": _TooLate,
        "ConnectTimeout": _TooLate, "ReadTimeout": _TooLate, "HTTPError": _Refused, "InvalidURL": _WrongUse,
        "MissingSchema": _WrongUse, "JSONDecodeError": _json.JSONDecodeError,
    },
    "urllib3": {"HTTPError": _Failure, "MaxRetryError": _NotSent, "NewConnectionError": _NotSent, "TimeoutError": _TooLate},
}
_NAMES = {
    "httpx": {"Client": _Client, "AsyncClient": _AsyncClient, "Timeout": _Timeout},
    "requests": {"Session": _Client, "session": _Client},
    "urllib3": {"PoolManager": _Pool, "Timeout": _Timeout},
}

def _offer():
    import sys
    import types

    here, failures = globals(), _FAILURES[_LIBRARY]
    # They are called as the library calls them; what is more special comes later.
    for name, failure in failures.items():
        if failure.__name__.startswith("_"):
            failure.__name__ = failure.__qualname__ = name
    here.update(_NAMES[_LIBRARY])
    if _LIBRARY == "httpx":
        here.update(failures)
        return
    # These keep their exceptions in a module.
    exceptions = types.ModuleType(f"{_LIBRARY}.exceptions")
    exceptions.__dict__.update(failures)
    sys.modules[exceptions.__name__] = here["exceptions"] = exceptions
    if _LIBRARY == "requests":
        here.update({name: failure for name, failure in failures.items() if name != "InvalidURL"})


_offer()


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"`{_LIBRARY}` in a sealed cell has no `{name}`: it is hotcell's own, with the requests and their answers")
