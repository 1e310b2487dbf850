"""Files that are dropped on the page: kept once, under a safe name, inside the collection's folder."""

from pathlib import Path

import pytest

from ingest.uploads import is_kept, keep


def test_a_file_is_kept_once(tmp_path: Path) -> None:
    first = keep(tmp_path, "notes.txt", b"one")
    assert first == tmp_path / "uploads" / "notes.txt"
    assert first.read_bytes() == b"one"
    assert keep(tmp_path, "notes.txt", b"one") == first
    other = keep(tmp_path, "notes.txt", b"two")
    assert other.name == "notes (2).txt"
    assert keep(tmp_path, "notes.txt", b"two") == other
    assert first.read_bytes() == b"one"
    assert sorted(each.name for each in (tmp_path / "uploads").iterdir()) == ["notes (2).txt", "notes.txt"]
    for name, numbered in (("v1.2 report.pdf", "v1.2 report (2).pdf"), ("rfc.txt.gz", "rfc (2).txt.gz")):
        keep(tmp_path, name, b"one")
        assert keep(tmp_path, name, b"two").name == numbered
    assert is_kept(tmp_path, first)
    assert not is_kept(tmp_path, tmp_path / "notes.txt")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\me\\report.pdf", "report.pdf"),
        (".hidden.md", "hidden.md"),
        ("a\0b:c?.txt", "a_b_c_.txt"),
        ("x" * 400 + ".txt", "x" * 150 + ".txt"),
        ("data.txt.gz", "data.txt.gz"),
    ],
)
def test_names_cannot_leave_the_folder(tmp_path: Path, name: str, kept: str) -> None:
    assert keep(tmp_path, name, b"x") == tmp_path / "uploads" / kept


def test_a_kind_that_nothing_reads_is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tool\.exe: no reader for files ending in '\.exe'"):
        keep(tmp_path, "tool.exe", b"MZ")
    assert not (tmp_path / "uploads").exists()
