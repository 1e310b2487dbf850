"""Blockbuster over every test, and a tiny model as the default one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from ingest.pipeline import Options, ingest


@pytest.fixture(autouse=True)
def no_blocking() -> Iterator[None]:
    """Make a call that blocks the event loop fail the test that made it."""
    with blockbuster_ctx():
        yield


@pytest.fixture(autouse=True)
def tiny_default(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the default model be a tiny one."""
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of four files, one of two pages."""
    folder = tmp_path / "files"
    folder.mkdir()
    texts = {
        "whales.txt": "Whales sing in the deep sea.\fThey breathe air at its surface.",
        "stars.txt": "Stars shine at night. A telescope gathers their light.",
        "iron.txt": "Rust eats iron. Paint keeps the rain away.",
        "bread.md": "# Bread\n\nFlour, water, salt and time make bread.",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def ingested(folder: Path, tmp_path: Path) -> Path:
    """The same files as a collection."""
    report = ingest([folder], tmp_path / "ingested", Options(workers=0))
    assert report.indexed == 4
    return tmp_path / "ingested"
