import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ingest import pool
from ingest.language import Language
from ingest.parsing import Parsed, parse_file, parse_files
from ingest.readers import ParsedFile

STUB = Path(__file__).with_name("stub_worker.py")


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes files whose pages are orders to `stub_worker`."""
    monkeypatch.setattr(pool, "WORKER_COMMAND", (sys.executable, "-P", str(STUB)))

    def write(name: str, first: Any, second: Any = None) -> Path:
        path = tmp_path / f"{name}.pdf"
        path.write_text(json.dumps({"first": first, "second": first if second is None else second}))
        return path

    return write


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) == before


def one(path: Path, **limits: Any) -> Parsed:
    (parsed,) = parse_files([path], workers=1, **limits)
    return parsed


def file_of(parsed: Parsed) -> ParsedFile:
    assert parsed.reason is None
    assert parsed.file is not None
    return parsed.file


def numbered(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"{number}.txt" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(f"Text number {number}")
    return paths


def test_workers_give_what_this_process_gives(tmp_path: Path, make_pdf: Any) -> None:
    (tmp_path / "a.md").write_text("# Head\n\ntext \ud83d", errors="surrogatepass")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "naïve 文.txt").write_text("text")
    paths = [
        make_pdf("First page", "Second page"),
        tmp_path / "a.md",
        tmp_path / "empty.txt",
        tmp_path / "naïve 文.txt",
        tmp_path / "gone.txt",
    ]
    expected = {path: parse_file(path) for path in paths}
    assert {parsed.path: parsed for parsed in parse_files(paths, workers=2)} == expected
    assert {parsed.path: parsed for parsed in parse_files(paths, workers=0)} == expected
    assert [parsed.reason for parsed in expected.values()] == [
        None,
        None,
        "no text",
        None,
        "cannot be read: No such file or directory",
    ]


def test_a_result_tells_what_the_file_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The quick brown fox jumps over the lazy dog and then it runs away from all of them. " * 5)
    os.utime(path, ns=(1, 1_700_000_000_123_456_700))
    parsed = one(path)
    assert (parsed.size, parsed.mtime_ns) == (path.stat().st_size, 1_700_000_000_123_456_700)
    assert parsed.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert parsed.language == Language("en", confident=True)


def test_a_failed_file_has_its_hash_too(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"")
    assert one(path).sha256 == hashlib.sha256(b"").hexdigest()


def test_every_file_has_a_result_whatever_happens_to_the_others(stub: Any, tmp_path: Path) -> None:  # case 6
    texts = numbered(tmp_path, 6)
    bad = [stub("crash", ["CRASH"]), stub("bug", ["BUG"]), stub("crash2", "CRASH"), stub("bug2", "BUG")]
    results = {parsed.path: parsed for parsed in parse_files([bad[0], *texts, *bad[1:]], workers=2)}
    assert [file_of(results[path]).pages for path in texts] == [(f"Text number {number}",) for number in range(6)]
    assert [results[path].reason for path in bad] == [
        "no page could be read: the parser crashed",
        "no page could be read: damaged: KeyError: 'a bug'",
        "the parser crashed",
        "damaged: KeyError: 'a bug'",
    ]


@pytest.mark.parametrize("order", ["FREEZE", "LOOP"])
def test_a_page_that_freezes_is_left_out_and_the_others_are_kept(stub: Any, order: str) -> None:  # case 5
    file = file_of(one(stub("a", ["one", order, "three"]), page_seconds=0.5))
    assert file.pages == ("one", "", "three")
    assert file.warnings == ("page 2 was left out: took over 0.5 s",)


def test_a_page_that_crashes_the_parser_is_left_out(stub: Any) -> None:  # case 5
    file = file_of(one(stub("a", ["CRASH", "two", "CRASH"])))
    assert file.pages == ("", "two", "")
    assert file.warnings == (
        "page 1 was left out: the parser crashed",
        "page 3 was left out: the parser crashed",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_a_page_that_eats_all_memory_is_left_out(stub: Any) -> None:  # case 5
    file = file_of(one(stub("a", ["one", "MEMORY", "three"]), memory_bytes=1 << 30))
    assert file.pages == ("one", "", "three")
    assert file.warnings == ("page 2 was left out: needs over 1 GiB of memory",)


@pytest.mark.parametrize("order", ["CRASH", "FREEZE", "BUG", "DAMAGED"])
def test_a_page_that_one_engine_cannot_read_is_read_by_the_other(stub: Any, order: str) -> None:
    parsed = one(stub("a", ["one", order, "three"], ["eins", "zwei", "drei"]), page_seconds=0.5)
    assert file_of(parsed).pages == ("one", "zwei", "three")
    assert file_of(parsed).warnings == ()


@pytest.mark.parametrize("order", ["CRASH", "BUG", "DAMAGED"])
def test_a_file_that_one_engine_cannot_open_is_read_by_the_other(stub: Any, order: str) -> None:
    assert file_of(one(stub("a", order, ["eins", "zwei"]))).pages == ("eins", "zwei")


def test_a_file_that_freezes_when_it_is_opened_fails(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "OPENING_PAGES", 2)
    assert one(stub("a", "FREEZE"), page_seconds=0.5).reason == "took over 1 s"


def test_a_file_that_keeps_crashing_is_given_up(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_LOST_PAGES", 3)
    file = file_of(one(stub("a", ["one", *["CRASH"] * 5, "seven"])))
    assert file.pages == ("one", "", "", "", "", "", "")
    assert file.warnings == (
        "pages 2 to 3 were left out: the parser crashed",
        "pages 4 to 7 were left out: the parser crashed, as 2 pages before",
    )


def test_what_a_parser_prints_does_not_disturb(stub: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert file_of(one(stub("a", ["NOISE", "two"]))).pages == ("NOISE", "two")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (2, 3), (2, 8)])
def test_look_ahead_is_bounded(tmp_path: Path, workers: int, ahead: int) -> None:  # case 7
    taken = 0

    def paths() -> Iterator[Path]:
        nonlocal taken
        for path in numbered(tmp_path, 30):
            taken += 1
            yield path

    given = 0
    most = 0
    for _ in parse_files(paths(), workers=workers, ahead=ahead):
        most = max(most, taken - given)
        given += 1
    assert (taken, given) == (30, 30)
    assert most == ahead


def test_workers_are_replaced_after_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_FILES_A_WORKER", 2)
    started: list[Any] = []
    start = pool.Pool._start

    def counted(self: pool.Pool) -> Any:
        started.append(None)
        return start(self)

    monkeypatch.setattr(pool.Pool, "_start", counted)
    assert len(list(parse_files(numbered(tmp_path, 5), workers=1))) == 5
    assert len(started) == 3


def test_closing_early_ends_the_workers(stub: Any, tmp_path: Path) -> None:
    results = parse_files([*numbered(tmp_path, 1), stub("a", ["FREEZE"])], workers=2)
    assert next(results).path.name == "0.txt"
    results.close()
    assert psutil.Process().children() == []


def test_an_error_of_the_caller_ends_the_workers(tmp_path: Path) -> None:
    def paths() -> Iterator[Path]:
        yield from numbered(tmp_path, 1)
        raise ValueError("the caller's own")

    with pytest.raises(ValueError, match="the caller's own"):
        list(parse_files(paths(), workers=1))


def test_workers_that_cannot_start_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WORKER_COMMAND", (sys.executable, "-c", "raise SystemExit('no such luck')"))
    with pytest.raises(ChildProcessError, match=r"could not start \(exit code 1\): no such luck"):
        list(parse_files(numbered(tmp_path, 1), workers=1))


def test_no_paths() -> None:
    assert list(parse_files([], workers=2)) == []


def test_workers_do_not_import_torch() -> None:
    code = (
        "import sys, ingest.worker, ingest.readers.pdf_pdfium, ingest.readers.pdf_pypdf; print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"


SCRIPT = """
    import sys
    from pathlib import Path
    from ingest import pool
    from ingest.parsing import parse_files

    pool.WORKER_COMMAND = (sys.executable, "-P", sys.argv[2])
    for parsed in parse_files([Path(sys.argv[1])], workers=1):
        print(parsed)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes, no process groups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(stub: Any, number: signal.Signals) -> None:
    path = stub("a", ["FREEZE"])
    pipe = path.with_suffix(".pipe")
    os.mkfifo(pipe)
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), str(STUB)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as parent:
        frozen = psutil.Process(int(pipe.read_text()))
        os.killpg(parent.pid, number)
        out, errors = parent.communicate()
    assert out == b""
    # Python's own account of Ctrl-C in the parent, and no other.
    assert errors.count(b"Traceback") == (1 if number == signal.SIGINT else 0)
    assert frozen.wait() is None
