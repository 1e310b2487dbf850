"""The process of a job: its task comes in on standard input, how far it is goes out on standard output.

One line of JSON each. In: the task, an object, and later perhaps the word "stop". Out: what happens, a list of the name
of a method of `Progress` and its arguments; at the end, an object with the ``outcome``, or with the ``error``.
"""

import json
import os
import sys
import threading
import warnings
from dataclasses import asdict
from typing import IO, Any

from indexes.collection import Collection
from ingest.pipeline import Options, Progress, ingest
from lmk_rag.encoding.base_model import ModelWarning
from lmk_rag.indexing import Settings
from lmk_rag.upkeep import add_pooling, embed_anew

NICENESS = 5
"""So that whoever uses the machine meanwhile comes first."""


class Output(Progress):
    """The pipe to the process that waits for this one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def say(self, message: object) -> None:
        """Send one line; where nobody reads any more, end."""
        try:
            self._stream.write(json.dumps(message).encode() + b"\n")  # ASCII: a path may hold lone surrogates
            self._stream.flush()
        except BrokenPipeError:
            os._exit(1)

    def start(self, files: int, size: int) -> None:
        """Pass it on."""
        self.say(["start", files, size])

    def message(self, text: str) -> None:
        """Pass it on."""
        self.say(["message", text])

    def embedding(self, size: int, characters: int) -> None:
        """Pass it on."""
        self.say(["embedding", size, characters])

    def tokens(self, count: int) -> None:
        """Pass it on."""
        self.say(["tokens", count])

    def finished(self, files: int, size: int) -> None:
        """Pass it on."""
        self.say(["finished", files, size])


def main() -> None:
    """Do the task that the first line names; end at once when standard input does, since the parent is gone then."""
    if hasattr(os, "nice"):  # Windows has another way, which the parent takes
        os.nice(NICENESS)
    warnings.simplefilter("ignore", ModelWarning)  # told as a message
    output = Output(_private_output())
    task = json.loads(sys.stdin.readline() or "null")
    stop = threading.Event()
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    try:
        last: dict[str, Any] = {"outcome": do(task, output, stop)}
    except Exception as error:  # told on the page, whatever it is
        last = {"error": _told(error)}
    output.say(last)
    sys.stderr.flush()
    os._exit(0)  # the thread waits for standard input, which an orderly end would have to close


def do(task: dict[str, Any], progress: Progress, stop: threading.Event) -> dict[str, Any]:
    """Do a task; return what came of it, as JSON can hold it.

    Args:
        task: ``do`` names the function; the rest are its arguments.
        progress: told what happens.
        stop: when it is set, the batch under way is the last.
    """
    match task["do"]:
        case "ingest":
            options: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in task["options"].items()
            }
            options["settings"] = Settings(**options["settings"])
            return asdict(ingest(task["paths"], task["collection"], Options(**options), progress, stop))
        case "add_pooling":
            with Collection.open(task["collection"]) as opened:
                return {"embedded": add_pooling(opened, task["pooling"], task["device"], progress, stop)}
        case "embed_anew":
            with Collection.open(task["collection"]) as opened:
                return asdict(embed_anew(opened, Settings(**task["settings"]), (), progress, stop))
    raise ValueError(f"There is no task {task['do']!r}.")


def _told(error: Exception) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": type(error).__name__, "sentence": str(error) or type(error).__name__}
    if isinstance(error, OSError) and error.errno is not None:
        told["system"] = [error.errno, error.strerror, None if error.filename is None else str(error.filename)]
    return told


def _listen(stop: threading.Event) -> None:
    """Set the event when the parent asks for an end; end at once when it is gone, which loses one batch at most."""
    for _ in sys.stdin:
        stop.set()
    os._exit(1)


def _private_output() -> IO[bytes]:
    """Keep standard output for this protocol; what libraries print goes to standard error, the terminal's."""
    sys.stdout.flush()
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return output


if __name__ == "__main__":
    main()
