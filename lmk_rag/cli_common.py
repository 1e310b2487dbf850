"""What the commands share: options, errors as one sentence, an end by Ctrl-C that loses nothing."""

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from indexes.collection import Collection
from indexes.errors import CollectionError
from lmk_rag import console
from lmk_rag.encoding.base_model import ModelError, ModelWarning
from lmk_rag.encoding.checkpoints import POOLINGS


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        console.fail(f"{path} cannot be found ({error}): name the folder by its whole path.")


CollectionOption = Annotated[
    Path,
    typer.Option(
        "--collection",
        metavar="DIR",
        envvar="LMK_RAG_COLLECTION",
        help="The collection's folder.",
        callback=_at_home,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, nothing else.")]
DeviceOption = Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps.")]
ModelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="A model's name or folder [default: the collection's, else ours].")
]
GranularityOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Content tokens a landmark [default: the model's own].")
]
MaxTokensOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Content tokens read of each document, 0 for all [default].")
]
DEFAULT_COLLECTION = Path("lmk-collection")


def poolings_of(names: str | None) -> tuple[str, ...]:
    """Read a list of poolings, "lmk,cls,mean"; an unknown one ends the command with exit code 2."""
    if names is None:
        return ()
    poolings = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in poolings:
        if name not in POOLINGS:
            console.fail(f"Pooling {name!r} is not known: choose {', '.join(POOLINGS)}.")
    return poolings


@contextmanager
def one_sentence(*also: type[Exception]) -> Iterator[None]:
    """Turn the errors that a user can do something about into their sentence and exit code 2."""
    expected: tuple[type[Exception], ...] = (CollectionError, ModelError, OSError, *also)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # said as a notice, without a line of source code
        try:
            yield
        except expected as error:
            console.fail(str(error))


@contextmanager
def open_collection(collection: Path) -> Iterator[Collection]:
    """Open a collection for one command; what goes wrong is told in a sentence."""
    with one_sentence(), Collection.open(collection) as found:
        yield found


@contextmanager
def finish_on_interrupt(bar: console.ProgressBar) -> Iterator[threading.Event]:
    """Let the first Ctrl-C ask for an end after the batch under way; a second one ends at once."""
    stop = threading.Event()

    def ask(_number: int, _frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)
        bar.message("Stopping: the batch under way is finished and kept (Ctrl-C again ends at once).")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
