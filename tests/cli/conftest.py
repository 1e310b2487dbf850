"""The command line, run in this process over a tiny model."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lmk_rag.cli import app

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs one command over the collection ``tmp_path / "collection"``."""
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    monkeypatch.setenv("LMK_RAG_COLLECTION", str(tmp_path / "collection"))
    monkeypatch.setenv("COLUMNS", "300")

    def run_command(*arguments: object) -> Result:
        result = CliRunner().invoke(
            app, [os.fspath(each) if isinstance(each, Path) else str(each) for each in arguments]
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run_command


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    """Give a function that runs a command with ``--json`` and reads all of its standard output as one object."""

    def run_command(*arguments: object, code: int = 0) -> Any:
        result = run(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return run_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three readable files."""
    folder = tmp_path / "files"
    (folder / "deep").mkdir(parents=True)
    (folder / "sea.txt").write_text("The sea is deep. Whales sing in it.", encoding="utf-8")
    (folder / "stars.md").write_text("# Stars\n\nStars shine at night.", encoding="utf-8")
    (folder / "deep" / "iron.html").write_text(
        "<html><title>Iron</title><body><p>Rust eats iron.</p></body></html>", encoding="utf-8"
    )
    return folder
