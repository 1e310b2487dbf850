"""The guard that keeps the suite off the network does its work."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = ("192.0.2.1", 9)  # TEST-NET-1: no machine has it


@pytest.mark.parametrize("attempt", ["connect", "connect_ex"])
def test_a_connection_to_another_machine_is_refused(attempt: str, refused_connections: list[str]) -> None:
    with socket.socket() as tcp, pytest.raises(RuntimeError, match=r"192\.0\.2\.1"):
        getattr(tcp, attempt)(OUTSIDE)
    assert len(refused_connections) == 1
    refused_connections.clear()


def test_a_datagram_and_a_name_look_up_are_refused(refused_connections: list[str]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as udp, pytest.raises(RuntimeError, match="sendto"):
        udp.sendto(b"", OUTSIDE)
    with pytest.raises(RuntimeError, match="getaddrinfo"):
        socket.getaddrinfo("example.org", 80)
    refused_connections.clear()


def test_loopback_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]):
        pass


def test_child_processes_are_guarded_too() -> None:
    code = f"import socket; socket.create_connection({OUTSIDE!r})"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 1
    assert "ConnectionBeyondLoopbackError" in child.stderr


def test_a_swallowed_refusal_still_fails_the_test(repository: Path, tmp_path: Path) -> None:
    for name in ("conftest.py", "netguard/sitecustomize.py"):
        copy = tmp_path / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((repository / "tests" / name).read_bytes())
    (tmp_path / "test_inner.py").write_text(
        "import contextlib, socket\n"
        "def test_inner():\n"
        "    with contextlib.suppress(Exception):\n"
        f"        socket.create_connection({OUTSIDE!r})\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    inner = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert inner.returncode == 1, inner.stdout
    assert "connections beyond loopback were tried" in inner.stdout
