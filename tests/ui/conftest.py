"""The app over a collection made by a tiny encoder: one document that tries to be markup, and some that do not."""

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from reportlab.pdfgen.canvas import Canvas
from streamlit.testing.v1 import AppTest

from ingest.pipeline import Options, ingest
from lmk_rag.encoding.base_model import ModelWarning
from tests.ui.pages import HOSTILE

FILES = {
    "hostile.md": f"# {HOSTILE}\n\nZebras graze. {HOSTILE}\n",
    "moon.txt": "The tides follow the moon. A spring tide comes when sun and moon pull along one line.",
    "bread.txt": "Dough rises while yeast feeds. A hot stone gives the loaf its crust.",
    "stars.html": "<html><title>Stars</title><body><p>Stars shine at night, each one a sun.</p></body></html>",
}
PDF_PAGES = ("Whales sing in the deep sea. They breathe air.", "Iron rusts in wet air. Rust eats the hull of a ship.")


def write_pdf(path: Path, pages: tuple[str, ...] = PDF_PAGES) -> None:
    canvas = Canvas(str(path), invariant=1)
    canvas.setTitle("Sea and iron")
    for page in pages:
        canvas.drawString(72, 700, page)
        canvas.showPage()
    canvas.save()


@pytest.fixture(autouse=True)
def _empty_caches() -> Iterator[None]:
    yield
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def _tiny_model(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    monkeypatch.setattr("lmk_rag.encoding.checkpoints.SHIPPED", tiny_bert / "none")


@pytest.fixture(scope="session")
def _made(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files and the collection of three poolings that they were made into."""
    made = tmp_path_factory.mktemp("app")
    files = made / "files"
    files.mkdir()
    for name, text in FILES.items():
        (files / name).write_text(text, encoding="utf-8")
    write_pdf(files / "sea.pdf")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the tiny model was trained for nothing
        patch.setenv("LMK_RAG_BASE", str(tiny_bert))
        patch.setattr("lmk_rag.encoding.checkpoints.SHIPPED", tiny_bert / "none")
        report = ingest([files], made / "collection", Options(poolings=("lmk", "cls", "mean"), workers=0))
    assert not report.failed
    return made


@pytest.fixture
def folder(_made: Path) -> Path:
    """The files that were indexed; copy one before changing it."""
    return _made / "files"


@pytest.fixture
def collection(_made: Path, tmp_path: Path) -> Path:
    """A copy of the collection."""
    return shutil.copytree(_made / "collection", tmp_path / "collection")


Open = Callable[..., AppTest]


@pytest.fixture
def open_page(repository: Path, collection: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Give a function that opens a page of the app, with a query in its address."""

    def open_named(name: str = "search", folder: Path = collection, **query: str) -> AppTest:
        monkeypatch.setenv("LMK_RAG_COLLECTION", str(folder))
        app = AppTest.from_file(str(repository / "ui" / "app.py"), default_timeout=120)
        if name != "search":
            app.switch_page(f"pages/{name}.py")
        for key, value in query.items():
            app.query_params[key] = value
        app.run()
        assert not app.exception, [each.value for each in app.exception]
        return app

    return open_named
