"""Refuses every connection beyond this machine.

The tests load it into their own process, and put its folder on PYTHONPATH so that Python runs it at the start of
every process that they start. An audit hook sees what a patched `socket.connect` would not: `connect_ex`, UDP,
name look-ups, and sockets made by C code through Python's module.
"""

import sys

attempts: list[str] = []
"""What was refused in this process, since library code may swallow the exception."""


class ConnectionBeyondLoopbackError(RuntimeError):
    """Something tried to reach another machine."""


def _is_local(host: object) -> bool:
    """Loopback addresses and names, "any" addresses, and empty hosts."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str):
        return host is None
    return host in {"", "localhost", "::1", "::", "0.0.0.0"} or host.startswith("127.")


def _refuse(event: str, host: object) -> None:
    message = f"{event} to {host!r}: the tests open no connection beyond loopback."
    attempts.append(message)
    raise ConnectionBeyondLoopbackError(message)


def _guard(event: str, args: tuple[object, ...]) -> None:
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = args[1]  # a string for Unix sockets, a tuple for internet ones, None for a connected socket
        if isinstance(address, tuple) and address and not _is_local(address[0]):
            _refuse(event, address[0])
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"} and not _is_local(args[0]):
        _refuse(event, args[0])


sys.addaudithook(_guard)
