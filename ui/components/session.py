"""What all pages and windows share: settings, the open collection with its encoder, the job that runs."""

import errno
import os
import runpy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from indexes.collection import DATABASE_FILE
from indexes.errors import CollectionError, LockedError
from ingest.readers import ReadError
from lmk_rag.encoding.base_model import ModelError
from lmk_rag.jobs import BusyError, Jobs
from lmk_rag.search import Searcher
from ui.components.markup import shortened

EXPECTED = (CollectionError, ModelError, ReadError, BusyError, OSError, ValueError, RuntimeError)
"""What a user can do something about; each has a sentence that says what."""
_APP = Path(__file__).parents[1] / "app.py"
_TO_DO = {
    errno.ENAMETOOLONG: "is longer than the file system takes: give the file, or the folders above it, shorter names.",
    errno.EACCES: "may not be opened by this account: change its permissions, or name another place.",
    errno.EROFS: "cannot be written, since its disk is read-only: name a collection elsewhere in Settings.",
    errno.ENOSPC: "cannot be written, since its disk is full: make room, then do the same again.",
}
"""What follows on a path, by what the operating system found wrong with it."""
_PATH = 160


@dataclass(frozen=True, slots=True)
class Choices:
    """What is chosen on the Settings page, for all windows until the app is stopped.

    Attributes:
        collection: the folder.
        model: for a new collection: ``default``, a folder, or a name on the hub.
        device: auto, cpu, cuda or mps.
        llm: of the answers, such as ``ollama:qwen3``; empty for none.
    """

    collection: Path
    model: str = "default"
    device: str = "auto"
    llm: str = ""


def from_environment() -> Choices:
    """Give the choices before anything is chosen: the collection of LMK_RAG_COLLECTION, else `lmk-collection` here."""
    folder = Path(os.environ.get("LMK_RAG_COLLECTION") or "lmk-collection").expanduser().absolute()
    return Choices(folder)


class _Shared:
    """The choices of all windows."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.choices = from_environment()


@st.cache_resource(show_spinner=False)
def _shared() -> _Shared:
    return _Shared()


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Give the place of the one job that runs."""
    return Jobs()


def through_app() -> None:
    """Run `ui/app.py`, which shows the page in its place, where Streamlit runs a page by itself.

    It takes a folder named `pages` for its older kind of app until a script has called `st.navigation`: a server whose
    first visitor follows a link to a page would show that page without the app around it, and all that come after.
    """
    if PagesManager.uses_pages_directory:
        runpy.run_path(str(_APP))
        st.stop()


def choices() -> Choices:
    """Tell what is chosen."""
    return _shared().choices


def choose(**changes: object) -> None:
    """Choose something else, for all windows."""
    shared = _shared()
    with shared.lock:
        shared.choices = replace(shared.choices, **changes)  # type: ignore[arg-type] # names of its fields


def has_collection() -> bool:
    """Tell whether there is a collection at the chosen place."""
    return (choices().collection / DATABASE_FILE).exists()


@st.cache_resource(show_spinner=False, max_entries=2)
def _open(folder: str, device: str, identity: tuple[int, int]) -> Searcher:
    return Searcher.open(Path(folder), device)


def searcher() -> Searcher:
    """Give the open collection and, once it has been needed, its encoder: one for all windows, not one a visit.

    Raises:
        CollectionError: there is no collection, or it cannot be read.
    """
    chosen = choices()
    file = chosen.collection / DATABASE_FILE
    stat = file.stat() if file.exists() else None  # another file at the same place is another collection
    return _open(str(chosen.collection), chosen.device, (stat.st_dev, stat.st_ino) if stat else (0, 0))


def key_of(found: Searcher) -> tuple[str, str, int]:
    """Give what results depend on besides the question: they are kept until the collection changes."""
    return str(found.collection.path), found.device, found.collection.generation


@contextmanager
def attempt() -> Iterator[None]:
    """Show what goes wrong inside as one sentence; what follows inside is left out."""
    try:
        yield
    except EXPECTED as error:
        complain(error)


def complain(error: Exception) -> None:
    """Show an error's own sentence; it may quote a document or a path, so it is no Markdown."""
    locked = isinstance(error, LockedError)
    st.error("The collection is being written." if locked else "That did not work.", icon=":material/error:")
    st.text(_sentence(error))


def _sentence(error: Exception) -> str:
    """Give an error's own sentence; what the operating system says is told as what to do."""
    if isinstance(error, OSError) and error.errno is not None:
        where = shortened(str(error.filename or "A file"), _PATH)
        return f"{where} {_TO_DO.get(error.errno, f'cannot be used: {error.strerror}.')}"
    return str(error) or type(error).__name__


def path_named(words: str) -> Path:
    """Give the whole path of a file or folder that was typed; it need not be there.

    Raises:
        ValueError: it begins with the home of somebody who is not there.
    """
    try:
        return Path(words.strip()).expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"There is no home folder for {words.strip()}: name it by its whole path.") from error
