"""Who may talk to the server: only this machine, or who knows the token."""

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OPEN = frozenset({"/healthz"})
"""What is told without a token."""


def is_loopback(host: str) -> bool:
    """Whether an address to bind to is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Turns away requests before anything reads them.

    Where the server is bound to loopback, a request must name it so: another name in the Host header is a page of
    another site that had its name point here (DNS rebinding). A request from a page of another origin is turned away
    in any case, since a browser sends uploads without asking first. Where there is a token, it must be there.
    """

    def __init__(self, app: ASGIApp, host: str, token: str | None) -> None:
        self.app = app
        self.names = _LOCAL_NAMES | {host.casefold()} if is_loopback(host) else None
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.names is not None and _name(host) not in self.names:
            refused = error(403, f"This server does not answer to the name {host!r}: use localhost.")
        elif (origin := headers.get("origin")) is not None and _place(origin) != host.casefold():
            refused = error(403, f"Pages of {origin} may not use this server.")
        elif (
            self.token is not None and scope["path"] not in _OPEN and not self._knows(headers.get("authorization", ""))
        ):
            refused = error(401, "A token is needed: send the header 'Authorization: Bearer TOKEN'.")
            refused.headers["WWW-Authenticate"] = "Bearer"
        else:
            await self.app(scope, receive, send)
            return
        await refused(scope, receive, send)

    def _knows(self, authorization: str) -> bool:
        """Whether a header has the token, compared in the same time wherever they differ."""
        scheme, _, given = authorization.partition(" ")
        wanted = (self.token or "").encode()
        return scheme.casefold() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), wanted)


def error(status: int, message: str) -> JSONResponse:
    """Answer with one sentence, in the form that OpenAI's clients read."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)


def _place(origin: str) -> str:
    """Give the host and port of an Origin header."""
    try:
        return urlsplit(origin).netloc.casefold()
    except ValueError:
        return ""


def _name(host: str) -> str:
    """Give the name of a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").casefold()
    except ValueError:
        return ""
