"""The set-up's one-sentence messages, the sample documents and the collection that `make run` chooses."""

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from scripts import check_system, make_samples, run, set_up

Version = namedtuple("Version", "major minor micro")


def is_one_sentence(text: str) -> bool:
    return text.count("\n") <= 1 and text.rstrip().endswith(".") and ". " not in text


def test_this_python_has_everything() -> None:
    assert check_system.main() == 0


def test_an_old_python_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "version_info", Version(3, 10, 13))
    assert check_system.main() == 1
    message = capsys.readouterr().err
    assert is_one_sentence(message)
    assert "3.11" in message
    assert "is 3.10" in message


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_missing_venv_module_is_told(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else real(name))
    assert check_system.main() == 1
    message = capsys.readouterr().err
    assert f"lacks the module {module}" in message
    assert "python3-venv" in message
    assert message.count("\n") == 1


class SqliteWithoutFts5:
    """A connection as an SQLite built without the extension gives it."""

    def execute(self, statement: str) -> None:
        assert "fts5" in statement
        raise sqlite3.OperationalError("no such module: fts5")

    def close(self) -> None:
        pass


def test_an_sqlite_without_fts5_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sqlite3, "connect", lambda _: SqliteWithoutFts5())
    assert check_system.main() == 1
    message = capsys.readouterr().err
    assert "without FTS5" in message
    assert message.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows goes by the README's plain commands, without make")
def test_make_stops_at_the_sentence(repository: Path, tmp_path: Path) -> None:
    old = tmp_path / "old-python"
    old.write_text(
        f"#!/bin/sh\nexec '{sys.executable}' -c '\n"
        "import runpy, sys\n"
        "sys.version_info = (3, 9, 2)\n"
        'runpy.run_path(sys.argv[1], run_name="__main__")\' "$@"\n'
    )
    old.chmod(0o755)
    command = ["make", "-C", str(repository), "setup", f"PYTHON={old}"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert "lmk-rag needs Python 3.11 or newer" in made.stderr
    assert "Traceback" not in made.stderr


def test_set_up_does_nothing_when_the_stamp_matches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(set_up, "STAMP", tmp_path / "stamp.json")
    monkeypatch.setattr(set_up, "works", lambda python: True)
    monkeypatch.setattr(set_up, "pip", lambda *arguments: commands.append(arguments))
    set_up.STAMP.write_text(json.dumps(set_up.wanted("cpu", "")))

    set_up.set_up("cpu", "")
    assert commands == []
    assert capsys.readouterr().out == ""

    set_up.set_up("gpu", "https://torch.invalid/cu")
    assert ("uninstall", "--yes", "faiss-cpu") in commands
    assert ("install", "--index-url", "https://torch.invalid/cu", set_up.torch_pin()) in commands
    assert commands[-1][-1] == f".[gpu,{set_up.EXTRAS}]"

    # The chosen torch stays chosen when later commands do not name it again.
    commands.clear()
    set_up.set_up("gpu", "")
    assert commands == []


def test_constraints_pin_exactly_and_name_no_place(repository: Path) -> None:
    lines = [
        line for line in (repository / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert "torch==2.13.0" in lines
    for line in lines:
        name, _, version = line.partition("==")
        assert name, line
        assert version, line
        assert not set("/+@ ") & set(line), line


def test_samples_are_long_plain_and_the_same_in_every_process(repository: Path, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        command = [sys.executable, "scripts/make_samples.py", str(tmp_path / seed)]
        subprocess.run(command, cwd=repository, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, stdout=-3)
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / seed).iterdir()} for seed in ("1", "2"))
    assert first == second
    assert len(first) == len(make_samples.MODULES) >= 35
    assert b"JSONDecodeError" in first["json.txt"]
    for name, content in first.items():
        assert len(content.split()) > 500, name
        assert b"\x08" not in content, name  # no overstrikes
        assert b" at 0x" not in content, name


def test_an_unchanged_sample_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_samples, "MODULES", ["json"])
    [path] = make_samples.write_samples(tmp_path)
    os.utime(path, ns=(1, 1))
    assert make_samples.write_samples(tmp_path) == [path]
    assert path.stat().st_mtime_ns == 1


def test_docs_with_a_tilde_and_spaces_has_a_collection_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("My Papers (2026)", "other/My Papers (2026)"):
        (tmp_path / name).mkdir(parents=True)
    folder, collection = run.documents_and_collection("~/My Papers (2026)")
    assert folder == tmp_path / "My Papers (2026)"
    assert collection.parent == run.COLLECTIONS
    assert collection.name.startswith("my-papers-2026-")
    assert run.documents_and_collection("~/My Papers (2026)") == (folder, collection)
    assert run.documents_and_collection("~/other/My Papers (2026)")[1] != collection


def test_docs_that_do_not_exist_are_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"there is no .*absent"):
        run.documents_and_collection(str(tmp_path / "absent"))
