"""The parser process: tasks come in on standard input, pages go out on standard output, one JSON object a line."""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any

from ingest.cleaning import clean
from ingest.readers import OpenFile, open_file, reason_of
from ingest.walk import fingerprint, sha256

OUT_OF_MEMORY = 77
_KINDS_SET_IN_LINES = frozenset({"pdf"})


def steps(path: Path, start: int = 0, stop: int | None = None, engine: int = 0) -> Iterator[dict[str, Any]]:
    """Read a file in steps, each told as it is done.

    Args:
        path: The file.
        start: Index of the first page to read.
        stop: Index after the last page to read; None for all.
        engine: Which engine of the reader to begin with.

    Yields:
        First ``{"size", "mtime_ns"}``, then ``{"sha256"}``, then ``{"kind", "page_count", "title", "metadata",
        "warnings"}``, then for each page ``{"page", "text", "counts"}`` or ``{"page", "lost"}``, then ``{"done"}``;
        or, as the last one, ``{"failed"}`` with the reason.
    """
    try:
        size, mtime_ns = fingerprint(path)
        yield {"size": size, "mtime_ns": mtime_ns}
        yield {"sha256": sha256(path)}
        opened = open_file(path, engine)
    except MemoryError:
        raise
    except Exception as error:  # a missing file, and whatever a parser may raise on a damaged one
        yield {"failed": reason_of(error)}
        return
    with contextlib.closing(opened):
        yield _about(opened)
        for index in range(start, opened.page_count if stop is None else min(stop, opened.page_count)):
            yield _page(opened, index)
    yield {"done": True}


def _about(opened: OpenFile) -> dict[str, Any]:
    return {
        "kind": opened.kind,
        "page_count": opened.page_count,
        "title": clean(opened.title).text.strip(),
        "metadata": _clean_values(opened.metadata),
        "warnings": opened.warnings,
    }


def _clean_values(value: object) -> object:
    """Clean every string in a JSON-able value; entries of a mapping that are empty are left out."""
    if isinstance(value, str):
        return clean(value).text.strip()
    if isinstance(value, dict):
        cleaned = {clean(str(key)).text: _clean_values(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in ("", None, [], {})}
    if isinstance(value, (list, tuple)):
        return [_clean_values(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _page(opened: OpenFile, index: int) -> dict[str, Any]:
    try:
        raw = opened.page(index)
    except MemoryError:
        raise
    except Exception as error:  # as above: one page is lost, not the file
        return {"page": index, "lost": reason_of(error)}
    set_in_lines = opened.kind in _KINDS_SET_IN_LINES
    cleaned = clean(raw, join_hyphenated=set_in_lines)
    text = cleaned.text.strip("\n") if set_in_lines else cleaned.text
    return {"page": index, "text": text, "counts": astuple(cleaned.counts)}


def main() -> None:
    """Serve tasks until standard input ends. The first line tells the memory limit in bytes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    settings = json.loads(sys.stdin.readline() or "{}")
    out = _private_output()
    _limit_memory(settings.get("memory_bytes"))
    threading.Thread(target=_receive, args=(tasks,), daemon=True).start()
    _send(out, {"ready": True})
    while True:
        task = tasks.get()
        try:
            for step in steps(Path(task["path"]), task["start"], task["stop"], task["engine"]):
                _send(out, step)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except BrokenPipeError:
            os._exit(0)


def _receive(tasks: "queue.SimpleQueue[dict[str, Any]]") -> None:
    """Pass tasks on; when the parent is gone, end at once, even in the middle of a page."""
    for line in sys.stdin:
        tasks.put(json.loads(line))
    os._exit(0)


def _private_output() -> IO[bytes]:
    """Keep standard output for this protocol; what libraries print goes nowhere."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.close(nothing)
    return out


def _send(out: IO[bytes], message: dict[str, Any]) -> None:
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def _limit_memory(memory_bytes: int | None) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    with contextlib.suppress(OSError, ValueError):  # macOS knows it and refuses it
        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    main()
