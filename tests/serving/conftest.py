"""A server over a small collection, on a loopback port, in a thread of this process."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.indexing import Indexer
from lmk_rag.search import Searcher
from lmk_rag.serving.rest import create_app

Serve = Callable[..., str]
TEXTS = [
    "The sea is deep and blue. Whales sing in the sea at night. Nobody knows why they sing.",
    "Rust eats iron. It needs water and air. Paint keeps water away from iron.",
]


@pytest.fixture
def collection(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    """Two documents with the vectors of a tiny encoder."""
    from lmk_rag.encoding.encoder import Encoder

    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    with Collection.open(tmp_path / "collection", create=True) as made:
        with made.write("test"):
            Indexer(made, [Encoder.load(pooling="mean")]).add(
                [Document(external_id=f"/{n}.txt", pages=(text,), title=f"Text {n}") for n, text in enumerate(TEXTS)]
            )
        yield made


@pytest.fixture
def serve(collection: Collection) -> Iterator[Serve]:
    """Give a function that starts a server and returns its address; keyword arguments go to ``create_app``."""
    with contextlib.ExitStack() as stack:

        def start(**arguments: str) -> str:
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", 0))
            app = create_app(Searcher(collection), **arguments)
            server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
            bound.listen()
            thread.start()

            def stop() -> None:
                server.should_exit = True
                thread.join()

            stack.callback(stop)
            return f"http://127.0.0.1:{bound.getsockname()[1]}"

        yield start


@pytest.fixture
def client(serve: Serve) -> Iterator[httpx.Client]:
    """A client of a server with its default settings."""
    with httpx.Client(base_url=serve(), timeout=60) as made:
        yield made
