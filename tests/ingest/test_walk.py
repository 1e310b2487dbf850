import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest.walk import Problem, absolute, fingerprint, sha256, walk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.txt",
        "a.pdf",
        "notes.md.gz",
        "picture.png",
        "archive.gz",
        ".hidden.txt",
        "~$open.docx",
        ".git/inside.txt",
        "sub/c.html",
        "sub/deep/d.TXT",
        "sub/deep/draft e.txt",
        "Ünï/文.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def names(folder: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in walk([folder], include, exclude)]


def test_a_folder_is_walked_in_a_stable_order_without_hidden_and_unsupported_files(folder: Path) -> None:
    expected = ["a.pdf", "b.txt", "notes.md.gz", "sub/c.html", "sub/deep/d.TXT", "sub/deep/draft e.txt", "Ünï/文.txt"]
    assert names(folder) == expected


def test_paths_are_absolute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "sub")
    assert list(walk(["deep/../c.html"])) == [folder / "sub" / "c.html"]
    monkeypatch.setenv("HOME" if sys.platform != "win32" else "USERPROFILE", str(folder))
    assert list(walk(["~/b.txt"])) == [folder / "b.txt"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["*.pdf"], [], ["a.pdf"]),
        (["*.txt", "*.pdf"], ["draft*"], ["a.pdf", "b.txt", "Ünï/文.txt"]),
        (["sub/*"], [], ["sub/c.html"]),
        (["sub/**"], [], ["sub/c.html", "sub/deep/d.TXT", "sub/deep/draft e.txt"]),
        (["**/*.txt"], [], ["b.txt", "sub/deep/draft e.txt", "Ünï/文.txt"]),
        (["sub/**/d*"], [], ["sub/deep/d.TXT", "sub/deep/draft e.txt"]),
        ([], ["sub", "Ünï/"], ["a.pdf", "b.txt", "notes.md.gz"]),
        ([], ["**/deep/**"], ["a.pdf", "b.txt", "notes.md.gz", "sub/c.html", "Ünï/文.txt"]),
        (["[ab].*"], [], ["a.pdf", "b.txt"]),
        (["[!a].*"], [], ["b.txt", "sub/c.html", "sub/deep/d.TXT", "Ünï/文.txt"]),
        (["?.pdf"], [], ["a.pdf"]),
        (["[z-a]*"], [], []),
        (["[*"], [], []),
    ],
)
def test_globs(folder: Path, include: list[str], exclude: list[str], expected: list[str]) -> None:
    assert names(folder, include=include, exclude=exclude) == expected


def test_a_file_that_is_named_is_taken_though_hidden_or_excluded(folder: Path) -> None:
    assert list(walk([folder / ".hidden.txt"], exclude=["*.txt"])) == [folder / ".hidden.txt"]


def test_each_file_comes_once(folder: Path) -> None:
    assert len(list(walk([folder, folder / "sub", folder / "b.txt"]))) == 7


def test_what_was_named_and_cannot_be_taken_is_reported(folder: Path) -> None:
    problems: list[Problem] = []
    named = [folder / name for name in ("gone.txt", "x" * 300, "picture.png", "archive.gz")]
    assert list(walk(named, problems=problems)) == []
    assert [(problem.path.name, problem.reason) for problem in problems] == [
        ("gone.txt", "no such file or folder"),
        ("x" * 300, "cannot be read: its name is too long, give it or the folders above it shorter ones"),
        ("picture.png", "no reader for files ending in '.png'"),
        ("archive.gz", "no reader for files ending in '.gz'"),
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_are_followed_but_not_in_circles(folder: Path) -> None:
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "sub" / "twin").symlink_to(folder / "sub" / "deep")
    (folder / "sub" / "broken.txt").symlink_to(folder / "nowhere")
    found = names(folder)
    assert len(found) == 7
    assert [name for name in found if "twin" in name or "up/" in name or "broken" in name] == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_what_is_no_regular_file_is_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    problems: list[Problem] = []
    assert list(walk([tmp_path], problems=problems)) == []
    assert list(walk([tmp_path / "pipe.txt"], problems=problems)) == []
    assert [problem.reason for problem in problems] == ["not a regular file"]


def test_absolute_keeps_links(tmp_path: Path) -> None:
    assert absolute(tmp_path / "a" / ".." / "b") == tmp_path / "b"


def test_fingerprint_and_hash(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 3_000_000)
    os.utime(path, ns=(1, 1_600_000_000_123_456_700))
    assert fingerprint(path) == (3_000_000, 1_600_000_000_123_456_700)
    assert sha256(path) == hashlib.sha256(b"x" * 3_000_000).hexdigest()
