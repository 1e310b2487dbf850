"""The scripts that build training text: what is held out stays out, other languages and links too."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lmk_rag.training.corpus import Corpus
from tests.evaluation.test_sources import ABOUT, HTML, TEXT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "build_training_text.py"
    spec = importlib.util.spec_from_file_location("build_training_text", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HELD_OUT = [
    "python3.11-doc", "python3.11", "Python3.11-doc_3.11.2-6_all", "python3-doc", "linux-doc-6.1", "linux-doc-6.5",
    "anarchism", "python-peps", "python-django-doc", "cmake-doc", "cmake-data",
]  # fmt: skip


@pytest.mark.parametrize("name", HELD_OUT)
def test_held_out_packages_are_told_by_name(script: ModuleType, name: str) -> None:
    assert script.is_held_out(name)


def test_what_was_trained_on_is_not_held_out(script: ModuleType, repository: Path) -> None:
    table = (repository / "docs" / "training.md").read_text().split("| packages | kind |")[1].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    names = [name.strip() for cell in cells for name in cell.split(",")]
    assert len(names) > 40
    assert not [name for name in names if script.is_held_out(name.lstrip("-"))]


def test_packages_are_found_given_alone_or_together(script: ModuleType, tmp_path: Path) -> None:
    for name in ("debian-policy", "python3.11-doc", "debs", ".apt"):
        (tmp_path / name / "usr").mkdir(parents=True)

    assert [path.name for path in script.packages_of(tmp_path)] == ["debian-policy", "python3.11-doc"]
    assert [path.name for path in script.packages_of(tmp_path / "python3.11-doc")] == ["python3.11-doc"]


def test_a_folder_deep_in_a_held_out_package_bears_its_names(script: ModuleType, tmp_path: Path) -> None:
    deep = tmp_path / "x-doc" / "usr" / "share" / "doc" / "python3.11" / "html" / "library"
    assert script.names_of(deep) == ("x-doc", "usr", "share", "doc", "python3.11", "html", "library")
    assert script.names_of(tmp_path / "python3-project" / "debian-policy") == ("debian-policy",)


def test_a_held_out_package_is_left_out_and_named(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("one/usr/share/doc/one", "one/usr/share/doc/python3.11/html", "python3.11-doc/usr/share/doc"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "page.html").write_text("x")
    monkeypatch.setattr(script, "write", lambda *_: 0)
    monkeypatch.setattr(script, "read_all", lambda packages, _: print(*packages) or iter(()))
    monkeypatch.setattr(sys, "argv", ["build", str(tmp_path), "--out", str(tmp_path / "out")])

    script.main()

    told = capsys.readouterr()
    assert "python3.11-doc: held out, not taken" in told.err
    assert f"{tmp_path / 'one'}\n" in told.out  # the packages that are read
    assert "python3.11-doc" not in told.out
    found = script.manual_files(tmp_path / "one", 10)
    assert [str(path.relative_to(tmp_path)) for path in found] == ["one/usr/share/doc/one/page.html"]


def test_links_translations_and_large_pdfs_are_left_out(script: ModuleType, tmp_path: Path) -> None:
    root = tmp_path / "pack" / "usr" / "share"
    for name in (
        "doc/pack/guide.html",
        "doc/pack/de/guide.html",
        "doc/pack/guide.fr.html",
        "doc/pack/guide.html.fr",
        "doc/pack/guide.html.en",
        "doc/pack/pt_BR/guide.html",
        "doc/pack/notes.txt",
        "doc/pack/small.pdf",
        "man/man3/reel.3.gz",
        "man/de/man3/reel.3.gz",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    (root / "doc/pack/large.pdf").write_bytes(b"x" * (script.LARGEST_PDF + 1))
    (root / "doc/pack/link.html").symlink_to("guide.html")

    found = [str(path.relative_to(root)) for path in script.manual_files(tmp_path / "pack", 10)]

    assert found == ["doc/pack/guide.html", "doc/pack/guide.html.en", "man/man3/reel.3.gz", "doc/pack/small.pdf"]


def test_english_is_told_by_its_article(script: ModuleType) -> None:
    assert script.is_english("the tape and the reel of a pump " * 20)
    assert not script.is_english("das Band und die Spule einer Pumpe " * 20)
    assert not script.is_english("the tape")


def test_of_the_rfcs_only_the_training_split_is_taken(script: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "doc-rfc-std" / "usr"
    folder.mkdir(parents=True)
    for number in (10, 160, 260, 7000):  # training, test, development; 7000 // 50 = 140, divisible by 7: training
        (folder / f"rfc{number}.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
        (folder / f"rfc{number}.json").write_text(json.dumps({**ABOUT, "obsoletes": [], "updated_by": []}))

    texts = list(script.read_all([tmp_path / "doc-rfc-std"], 0))

    assert [text.id for text in texts] == ["rfc10", "rfc7000"]


def test_the_title_is_no_heading_of_the_text(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(HTML)

    manual = script.read_manual(tmp_path / "page.html")

    assert manual.title == "Reels & tapes"
    assert "Reels & tapes" not in manual.text


def test_a_share_is_kept(script: ModuleType) -> None:
    keys = [f"document {at}" for at in range(2000)]
    quarter = {key for key in keys if script.is_kept(key, 0.25)}

    assert 400 < len(quarter) < 600
    assert quarter < {key for key in keys if script.is_kept(key, 0.5)}
    assert all(script.is_kept(key, 1.0) for key in keys)


def test_packages_are_counted_by_family(script: ModuleType) -> None:
    assert script.family("texlive-science-doc") == "texlive"
    assert script.family("r-cran-zoo") == "r"
    assert script.family("debian-policy") == "debian-policy"


def test_text_is_built_from_a_folder_of_packages(repository: Path, tmp_path: Path, tiny_bert: Path) -> None:
    page = tmp_path / "corpora" / "pack" / "page.html"
    page.parent.mkdir(parents=True)
    page.write_text(HTML.replace("slow", "the reel and the tape " * 30))
    path = os.pathsep.join([str(repository), os.environ.get("PYTHONPATH", "")])

    done = subprocess.run(
        [sys.executable, "scripts/build_training_text.py", tmp_path / "corpora", "--out", tmp_path / "text"],
        cwd=repository,
        env={**os.environ, "LMK_RAG_BASE": str(tiny_bert), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    (entry,) = Corpus(tmp_path / "text").entries
    assert entry.title == "Reels & tapes"
    assert [heading for heading, _, _ in entry.headings] == ["Winding"]
    assert done.stdout.splitlines()[-1] == f"{len(entry)} tokens"
