"""The other commands: what they print, as JSON and for people, and their exit codes."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from indexes.collection import Collection
from lmk_rag import __version__
from lmk_rag.console import literal, size
from lmk_rag.evaluation import beir
from lmk_rag.evaluation.systems import SYSTEMS

Run = Callable[..., Result]
RunJson = Callable[..., Any]


def test_search_json_is_the_contract(run_json: RunJson, folder: Path) -> None:
    run_json("ingest", folder)
    found = run_json("search", "whales in the sea", "-k", 2)
    assert set(found) == {"score_kind", "hits"}
    assert len(found["hits"]) == 2
    for rank, hit in enumerate(found["hits"], start=1):
        assert list(hit) == ["rank", "id", "path", "title", "score", "passages"]
        assert hit["rank"] == rank
        for passage in hit["passages"]:
            assert list(passage) == ["page", "start", "end", "text", "score"]
    best = found["hits"][0]
    assert best["path"] == str(folder / "sea.txt")
    text = (folder / "sea.txt").read_text(encoding="utf-8")
    assert all(text[p["start"] : p["end"]] == p["text"] for p in best["passages"])


@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
def test_search_modes_and_options(run_json: RunJson, folder: Path, mode: str) -> None:
    run_json("ingest", folder)
    hits = run_json("search", "iron", "--mode", mode, "--filter", "type=html", "--no-evidence")["hits"]
    assert [hit["path"] for hit in hits] == [str(folder / "deep" / "iron.html")]


def test_search_for_people_names_title_path_page_and_words(run: Run, folder: Path) -> None:
    (folder / "two.txt").write_text("First page.\fThe heron fishes alone.", encoding="utf-8")
    run("ingest", folder)
    output = run("search", "heron").stdout
    assert "p. 2  The heron fishes alone." in output
    assert str(folder / "two.txt") in output


def test_nothing_found_exits_with_0(run: Run, run_json: RunJson, folder: Path) -> None:
    run("ingest", folder)
    result = run("search", "xylophone", "--mode", "bm25")
    assert result.exit_code == 0
    assert "Nothing found." in result.stdout
    assert run_json("search", "xylophone", "--mode", "bm25")["hits"] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["search", "x", "--mode", "fuzzy"], "Mode 'fuzzy' is not known"),
        (["search", "x", "--pooling", "lmk"], "has no lmk vectors (it has mean)"),
        (["search", "x", "--pooling", "big"], "Pooling 'big' is not known"),
        (["search", "x", "--filter", "nonsense"], "nonsense"),
        (["search", "x", "-k", "0"], "-k"),
        (["show", "99"], "There is no document 99"),
        (["show", "1", "--page", "7"], "Document 1 has 1 page, not 7"),
    ],
)
def test_mistakes_are_told_in_a_sentence(run: Run, folder: Path, arguments: list[str], told: str) -> None:
    run("ingest", folder)
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["search", "list", "info", "verify", "show", "remove", "reindex"])
def test_a_missing_collection_is_told(run: Run, command: str, tmp_path: Path) -> None:
    result = run(command, *({"search": ["x"], "show": ["1"], "remove": ["x"]}.get(command, [])))
    assert result.exit_code == 2
    assert f"There is no collection at {tmp_path / 'collection'}" in result.stderr


def test_the_collection_falls_back_to_the_current_folder(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LMK_RAG_COLLECTION")
    monkeypatch.chdir(tmp_path)
    assert run("ingest", folder).exit_code == 0
    assert (tmp_path / "lmk-collection" / "collection.sqlite").exists()
    assert run("list", "--collection", tmp_path / "lmk-collection").exit_code == 0


def test_list_and_show(run: Run, run_json: RunJson, folder: Path) -> None:
    (folder / "empty.txt").write_text("", encoding="utf-8")
    run("ingest", folder)
    listed = run_json("list")
    assert {Path(each["path"]).name: (each["type"], each["title"]) for each in listed["documents"]} == {
        "sea.txt": ("text", "sea"),
        "stars.md": ("markdown", "Stars"),
        "iron.html": ("html", "Iron"),
    }
    assert listed["failed"] == [{"path": str(folder / "empty.txt"), "reason": "no text"}]
    assert run_json("list", "--failed") == {"failed": listed["failed"]}
    assert "no text" in run("list", "--failed").stdout
    shown = run_json("show", next(each["id"] for each in listed["documents"] if each["title"] == "Iron"))
    assert shown["pages_text"] == [{"page": 1, "text": "Rust eats iron."}]
    assert "Rust eats iron." in run("show", shown["id"]).stdout


def test_remove_takes_files_and_folders(run: Run, run_json: RunJson, folder: Path) -> None:
    run("ingest", folder)
    assert run_json("remove", folder / "deep") == {"removed": [str(folder / "deep" / "iron.html")], "unknown": []}
    assert run_json("remove", folder / "deep", code=1)["unknown"] == [str(folder / "deep")]
    assert len(run_json("list")["documents"]) == 2
    assert run_json("search", "iron", "--mode", "bm25")["hits"] == []
    assert (folder / "deep" / "iron.html").exists()


def test_info_tells_counts_models_sizes_generation(run: Run, run_json: RunJson, folder: Path) -> None:
    run("ingest", folder, "--pooling", "mean,lmk")
    about = run_json("info")
    assert about["documents"] == 3
    assert about["generation"] >= 1
    assert {each["pooling"]: each["dimension"] for each in about["encoders"]} == {"mean": 32, "lmk": 32}
    assert about["sizes"]["text"] == sum(
        len(t) for t in ["The sea is deep. Whales sing in it.", "# Stars\n\nStars shine at night.", "Rust eats iron."]
    )
    printed = run("info").stdout
    assert "documents  3 (1 html, 1 markdown, 1 text)" in printed
    assert "evidence  at most 1.6 bytes a byte of text, in each pooling" in printed


def test_verify_finds_and_mends_a_damaged_cache(run: Run, run_json: RunJson, folder: Path, tmp_path: Path) -> None:
    run("ingest", folder)
    assert run_json("verify") == {"clean": True, "problems": []}
    (cache,) = [path for path in (tmp_path / "collection").iterdir() if "faiss" in path.name]
    data = bytearray(cache.read_bytes())
    data[-20] ^= 255
    cache.write_bytes(bytes(data))
    assert not run_json("verify", code=1)["clean"]
    assert run_json("verify", "--repair")["clean"]
    assert run("verify").stdout.strip() == "Clean."


def test_verify_tells_a_database_that_cannot_be_read(run: Run, run_json: RunJson, folder: Path, tmp_path: Path) -> None:
    run("ingest", folder)
    (tmp_path / "collection" / "collection.sqlite").write_bytes(b"no database" * 100)
    result = run("verify")
    assert result.exit_code == 1
    assert "not an SQLite database" in result.stdout
    assert not run_json("verify", code=1)["clean"]


def test_reindex_with_another_granularity(run: Run, run_json: RunJson, folder: Path) -> None:
    run("ingest", folder)
    assert run_json("reindex", "--granularity", "8")["embedded"] == {"mean": 3}
    assert run_json("info")["encoders"][0]["granularity"] == 8
    assert run_json("ingest", folder)["unchanged"] == 3
    assert "0 documents by mean" in run("reindex").stdout


def test_reindex_by_another_model_takes_that_models_granularity(
    run: Run, run_json: RunJson, folder: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    shutil.copytree(tiny_bert, made)
    (made / "lmk_rag.json").write_text('{"pooling": "mean", "granularity": 8}', encoding="utf-8")
    run("ingest", folder, "--max-tokens", "5")
    run_json("reindex", "--model", made)
    assert [(each["granularity"], each["max_tokens"]) for each in run_json("info")["encoders"]] == [(8, 5)]
    run_json("reindex", "--max-tokens", "0")
    assert run_json("info")["encoders"][0]["max_tokens"] is None


def test_verify_without_faiss_judges_no_index_file(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ingest", folder)
    files = sorted(path.name for path in (tmp_path / "collection").iterdir())
    monkeypatch.setitem(sys.modules, "faiss", None)
    result = run("verify", "--repair")
    assert result.exit_code == 2
    assert "FAISS is not installed" in result.stderr
    assert sorted(path.name for path in (tmp_path / "collection").iterdir()) == files


def test_version_and_help_need_no_torch() -> None:
    code = (
        "import sys; from lmk_rag.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules and 'faiss' not in sys.modules, 'imported too much'"
    )
    for arguments in (["--version"], ["--help"], ["ingest", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if arguments == ["--version"]:
            assert done.stdout.strip() == f"lmk-rag {__version__}"


def test_list_and_info_need_no_torch(run: Run, folder: Path, tmp_path: Path) -> None:
    run("ingest", folder)
    code = (
        "import sys; from lmk_rag.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    for command in ("list", "info"):
        arguments = [sys.executable, "-c", code, command, "--collection", str(tmp_path / "collection")]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_text_of_documents_is_printed_literally(run: Run, tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_text("[bold]not bold[/bold] [red]heron", encoding="utf-8")
    run("ingest", tmp_path / "evil.txt")
    assert "[bold]not bold[/bold] [red]heron" in run("search", "heron").stdout
    assert literal("\x1b[31mred").plain == "\N{REPLACEMENT CHARACTER}[31mred"


def test_names_outside_utf_8_are_printed(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    name = os.fsdecode(b"bad\xff\nname.txt")
    (tmp_path / "files" / name).write_text("A heron.", encoding="utf-8")
    run("ingest", tmp_path / "files")
    for arguments in (["list"], ["search", "heron"], ["show", "1"]):
        output = run(*arguments).stdout
        output.encode("utf-8", "strict")
        assert "bad\N{REPLACEMENT CHARACTER}" in output
    assert run_json("list")["documents"][0]["path"] == str(tmp_path / "files" / name)


def test_lines_are_not_folded_for_a_program(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    long = folder / ("long" * 50 + ".txt")
    long.write_text("A heron.", encoding="utf-8")
    run("ingest", folder)
    assert any(line.endswith(str(long)) for line in run("list").stdout.splitlines())
    assert all(line == line.rstrip() for line in run("search", "heron").stdout.splitlines())


def test_a_home_folder_in_the_collections_name_is_meant(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LMK_RAG_COLLECTION", "~/mine")
    assert run("ingest", folder).exit_code == 0
    assert (tmp_path / "mine" / "collection.sqlite").exists()


def test_a_newer_schema_and_a_writer_at_work_are_no_damage(run: Run, folder: Path, tmp_path: Path) -> None:
    run("ingest", folder)
    with Collection.open(tmp_path / "collection") as collection, collection.write("ingest"):
        assert run("verify", "--repair").exit_code == 2
    with sqlite3.connect(tmp_path / "collection" / "collection.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    assert run("verify").exit_code == 2


def test_eval_and_train_tell_what_is_missing(run: Run, tmp_path: Path) -> None:
    assert "There is no data set 'nothing'" in run("eval", "nothing").stderr
    assert run("eval", tmp_path, "--systems", "oracle").exit_code == 2
    missing = run("train", "--config", tmp_path / "none.toml")
    assert missing.exit_code == 2
    assert missing.stderr.startswith("There is no recipe")


def test_evals_help_names_every_system(run: Run) -> None:
    told = "".join(run("eval", "--help").output.split())  # lines are broken at hyphens too
    assert set(re.split("[,:.]", told)) >= set(SYSTEMS)


def test_eval_reads_everything_without_a_limit_and_with_0(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMK_RAG_EVAL_CACHE", str(tmp_path / "cache"))
    corpus = {"d": "one two three four"}
    beir.save(
        beir.Dataset(name="s", corpus=corpus, queries={"q": "two"}, qrels={"q": {"d": 1}}), tmp_path / "s", "test"
    )

    def tokens(*limit: object) -> int:
        report = json.loads(run("eval", tmp_path / "s", "--systems", "base-mean", "--json", *limit).stdout)
        return int(report["results"][0]["tokens"])

    assert tokens("--max-tokens", 3) == 3
    assert tokens() == tokens("--max-tokens", 0) > 3


@pytest.mark.parametrize(("count", "written"), [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (2_345_678, "2.3 MB")])
def test_sizes_for_people(count: int, written: str) -> None:
    assert size(count) == written
