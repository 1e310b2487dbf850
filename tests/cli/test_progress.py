"""What a long command prints where no terminal shows its bar: a line now and then."""

import io

import pytest
from rich.console import Console

from lmk_rag import console


def work(files: int) -> None:
    with console.ProgressBar() as bar:
        bar.start(files, 100 * files)
        bar.message("Loading the model …")
        for _ in range(files):
            bar.finished(1, 100)


def test_a_line_for_each_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=written, width=200))
    work(1400)
    lines = [line for line in written.getvalue().splitlines() if line]
    assert lines[0] == "Loading the model …"
    assert lines[1:] == [f"{10 * tenth} %: {140 * tenth:,} of 1,400 documents" for tenth in range(1, 11)]


def test_few_files_are_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=written, width=200))
    work(3)
    told = [line for line in written.getvalue().splitlines() if "%" in line]
    assert told == ["30 %: 1 of 3 documents", "60 %: 2 of 3 documents", "100 %: 3 of 3 documents"]


def test_how_fast_it_is_stands_in_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    written, clock = io.StringIO(), iter((10.0, 14.0, 18.0))
    monkeypatch.setattr(console, "err", Console(file=written, width=200))
    with console.ProgressBar() as bar:
        bar.start(2, 200)
        with monkeypatch.context() as patch:
            patch.setattr("lmk_rag.console.time.monotonic", lambda: next(clock))
            bar.tokens(0)
            bar.tokens(6000)
            bar.finished(1, 100)
            bar.finished(1, 100)
    assert "50 %: 1 of 2 documents, 1,500 tokens/s\n100 %: 2 of 2 documents, 750 tokens/s\n" in written.getvalue()


def test_a_terminal_has_the_bar_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=written, width=200, force_terminal=True))
    work(20)
    assert "%" not in written.getvalue()
