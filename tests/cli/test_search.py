"""The commands that look for something: similar, search in one document, near copies, fusions."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]
RunJson = Callable[..., Any]


def ids(run_json: RunJson) -> dict[str, int]:
    return {Path(each["path"]).name: each["id"] for each in run_json("list")["documents"]}


def test_a_near_copy_stands_under_its_hit(run: Run, run_json: RunJson, folder: Path) -> None:
    shutil.copy(folder / "sea.txt", folder / "deep" / "sea.txt")
    run("ingest", folder)
    found = run_json("search", "whales sing")
    (hit,) = [hit for hit in found["hits"] if "folded" in hit]
    (copy,) = hit["folded"]
    assert list(copy) == ["id", "path", "title", "score", "similarity"]
    assert {hit["path"], copy["path"]} == {str(folder / "sea.txt"), str(folder / "deep" / "sea.txt")}
    assert copy["similarity"] == 1
    assert f"also at: {copy['path']}" in run("search", "whales sing").stdout


def test_similar_documents(run: Run, run_json: RunJson, folder: Path) -> None:
    shutil.copy(folder / "sea.txt", folder / "deep" / "sea.txt")
    run("ingest", folder)
    number = ids(run_json)["stars.md"]
    found = run_json("similar", number, "-k", 5)
    assert found["score_kind"] == "cosine"
    assert list(found["hits"][0]) in (
        ["rank", "id", "path", "title", "score", "passages"],
        ["rank", "id", "path", "title", "score", "passages", "folded"],
    )
    assert len(found["hits"]) == 2
    assert number not in [hit["id"] for hit in found["hits"]]
    sea = run_json("similar", ids(run_json)["sea.txt"], "--filter", "type=text")
    assert (sea["hits"], [Path(copy["path"]).name for copy in sea["folded"]]) == ([], ["sea.txt"])
    assert "near copies of it: " in run("similar", ids(run_json)["sea.txt"]).stdout


def test_search_in_one_document(run: Run, run_json: RunJson, folder: Path) -> None:
    text = "The heron waits. " * 20 + "\f" + "Salmon swim up the river. " * 20
    (folder / "two.txt").write_text(text, encoding="utf-8")
    run("ingest", folder)
    number = ids(run_json)["two.txt"]
    pages = [page["text"] for page in run_json("show", number)["pages_text"]]
    found = run_json("search", "salmon", "--in", number, "-k", 3)
    assert list(found) == ["passages"]
    assert 1 <= len(found["passages"]) <= 3
    for passage in found["passages"]:
        assert list(passage) == ["page", "start", "end", "text", "score"]
        assert pages[passage["page"] - 1][passage["start"] : passage["end"]] == passage["text"]
    assert "p. 2  Salmon swim" in run("search", "salmon", "--in", number).stdout
    assert run("search", " ", "--in", number).stdout.strip() == "Nothing found."


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--mode", "hybrid"], "--mode"),  # given, though it is the default
        (["--no-evidence"], "--no-evidence"),
        (["--fusion", "weighted"], "--fusion"),
        (["--filter", "type=text"], "--filter"),
        (["--filter", "type=text", "--mode", "bm25"], "--mode, --filter"),
    ],
)
def test_what_has_no_part_in_one_document_is_refused(run: Run, folder: Path, options: list[str], named: str) -> None:
    run("ingest", folder)
    result = run("search", "sea", "--in", 1, *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"--in looks through one document alone, where none is chosen or ranked: leave out {named}.\n"
    )
    assert run("search", "sea", "--in", 1, "-k", 1, "--pooling", "mean", "--device", "cpu").exit_code == 0
    assert run("search", "sea", *options).exit_code == 0


def test_help_shows_what_json_holds_for_one_document(run: Run, run_json: RunJson, folder: Path) -> None:
    run("ingest", folder)
    (passage,) = run_json("search", "whales", "--in", ids(run_json)["sea.txt"], "-k", 1)["passages"]
    shape = '{"passages": [{' + ", ".join(f'"{key}"' for key in passage) + "}, ...]}"
    assert shape in " ".join(run("search", "--help").stdout.split())


@pytest.mark.parametrize("fusion", ["weighted", "learned", "reciprocal"])
def test_fusions(run: Run, run_json: RunJson, folder: Path, fusion: str) -> None:
    run("ingest", folder)
    found = run_json("search", "iron", "--fusion", fusion)
    assert found["score_kind"] == "fusion"
    assert Path(found["hits"][0]["path"]).name == "iron.html"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["search", "x", "--fusion", "magic"], "Fusion 'magic' is not known: choose weighted, learned, reciprocal."),
        (["search", "x", "--in", "99"], "There is no document 99"),
        (["similar", "99"], "There is no document 99"),
        (["similar", "1", "--pooling", "lmk"], "has no lmk vectors"),
        (["similar", "1", "--pooling", "big"], "Pooling 'big' is not known"),
        (["similar", "1", "--filter", "nonsense"], "nonsense"),
    ],
)
def test_mistakes_are_told_in_a_sentence(run: Run, folder: Path, arguments: list[str], told: str) -> None:
    run("ingest", folder)
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output


def test_marked_words_are_coloured_for_people(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from io import StringIO

    from rich.console import Console

    from lmk_rag import console

    run("ingest", folder)
    told = StringIO()
    monkeypatch.setattr(console, "out", Console(file=told, force_terminal=True, color_system="standard", width=200))
    run("search", "whale", "--mode", "bm25")
    assert "\x1b[1;33mWhales\x1b[0m" in told.getvalue()
