"""`lmk-rag ingest`: its JSON, exit codes, states of files, what survives an interruption."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reportlab.pdfgen.canvas import Canvas
from typer.testing import Result

import ingest.pipeline as pipeline
from indexes.collection import Collection
from ingest.parsing import Parsed, parse_files
from ingest.pipeline import Options, Progress
from lmk_rag.indexing import Indexer, batches

Run = Callable[..., Result]
RunJson = Callable[..., Any]
TEXTS = ["The sea is deep. Whales sing in it.", "# Stars\n\nStars shine at night.", "Rust eats iron."]
KEYS = ["indexed", "updated", "unchanged", "removed", "failed", "documents", "tokens", "seconds"]


def counts(report: dict[str, Any]) -> tuple[int, int, int, int]:
    return report["indexed"], report["updated"], report["unchanged"], report["removed"]


def test_new_files_are_indexed_then_unchanged(run_json: RunJson, folder: Path) -> None:
    report = run_json("ingest", folder)
    assert list(report) == KEYS
    assert counts(report) == (3, 0, 0, 0)
    # one token a character that is no space: the tiny tokenizer
    assert report["tokens"] == sum(len("".join(text.split())) for text in TEXTS)
    again = run_json("ingest", folder)
    assert counts(again) == (0, 0, 3, 0)
    assert (again["failed"], again["documents"], again["tokens"]) == ([], 3, 0)


def test_unchanged_files_are_not_parsed(run_json: RunJson, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_json("ingest", folder)
    seen: list[Path] = []

    def recording(paths: Any, **options: Any) -> Any:
        for path in paths:
            seen.append(path)
            yield from parse_files([path], **options)

    monkeypatch.setattr(pipeline, "parse_files", recording)
    run_json("ingest", folder)
    os.utime(folder / "sea.txt", ns=(1, 1))  # same bytes, another time
    assert counts(run_json("ingest", folder)) == (0, 0, 3, 0)
    assert seen == []
    (folder / "sea.txt").write_text("Another sea.", encoding="utf-8")
    assert counts(run_json("ingest", folder)) == (0, 1, 2, 0)
    assert seen == [folder / "sea.txt"]


def test_a_time_stamp_that_changed_is_written_down(run_json: RunJson, folder: Path, tmp_path: Path) -> None:
    run_json("ingest", folder)
    os.utime(folder / "sea.txt", ns=(5, 5))
    run_json("ingest", folder)
    with Collection.open(tmp_path / "collection") as collection:
        stored = collection.find(str(folder / "sea.txt"))
    assert stored is not None
    assert stored.mtime_ns == 5


def test_a_changed_file_is_replaced_whole(run_json: RunJson, folder: Path) -> None:
    run_json("ingest", folder)
    (folder / "sea.txt").write_text("Only mountains now.", encoding="utf-8")
    assert counts(run_json("ingest", folder)) == (0, 1, 2, 0)
    assert run_json("search", "whales", "--mode", "bm25")["hits"] == []
    assert run_json("search", "mountains", "--mode", "bm25")["hits"][0]["path"] == str(folder / "sea.txt")


def test_bad_files_fail_with_their_reason_and_stop_nothing(run_json: RunJson, folder: Path) -> None:
    canvas = Canvas(str(folder / "scan.pdf"))
    canvas.rect(10, 10, 100, 100, fill=1)
    canvas.save()
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    (folder / "empty.txt").write_text(" \n", encoding="utf-8")
    report = run_json("ingest", folder, code=1)
    assert counts(report) == (3, 0, 0, 0)
    reasons = {Path(each["path"]).name: each["reason"] for each in report["failed"]}
    assert reasons["scan.pdf"] == "no text (scanned?)"
    assert reasons["empty.txt"] == "no text"
    assert set(reasons) == {"scan.pdf", "empty.txt", "broken.pdf"}


def test_a_failed_file_fails_again_without_parsing(
    run_json: RunJson, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "empty.txt").write_text("", encoding="utf-8")
    first = run_json("ingest", folder, code=1)
    monkeypatch.setattr(pipeline, "parse_files", None)
    again = run_json("ingest", folder, code=1)
    assert again["failed"] == first["failed"] == [{"path": str(folder / "empty.txt"), "reason": "no text"}]
    assert counts(again) == (0, 0, 3, 0)


def test_retry_failed_parses_again(run_json: RunJson, folder: Path, tmp_path: Path) -> None:
    target = folder / "later.txt"
    target.write_text("", encoding="utf-8")
    run_json("ingest", folder, code=1)
    stat = target.stat()
    seen: list[Path] = []
    original = parse_files

    def recording(paths: Any, **options: Any) -> Any:
        for path in paths:
            seen.append(path)
            yield from original([path], **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "parse_files", recording)
        run_json("ingest", folder, "--retry-failed", code=1)
    assert seen == [target]
    assert stat.st_mtime_ns == target.stat().st_mtime_ns
    target.write_text("There it is.", encoding="utf-8")
    assert run_json("ingest", folder)["indexed"] == 1
    with Collection.open(tmp_path / "collection") as collection:
        assert collection.failures() == []


def test_a_file_that_breaks_keeps_its_last_good_text(run_json: RunJson, folder: Path) -> None:
    run_json("ingest", folder)
    (folder / "sea.txt").write_text("", encoding="utf-8")
    assert run_json("ingest", folder, code=1)["failed"][0]["reason"] == "no text"
    assert run_json("search", "whales", "--mode", "bm25")["hits"][0]["path"] == str(folder / "sea.txt")
    assert run_json("ingest", folder, code=1)["unchanged"] == 2


def test_prune_removes_what_is_gone_in_these_folders_only(run_json: RunJson, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    run_json("ingest", folder, other)
    (folder / "sea.txt").unlink()
    (other / "sea.txt").unlink()
    assert run_json("ingest", folder)["removed"] == 0
    assert run_json("ingest", folder, "--prune")["removed"] == 1
    assert [Path(each["path"]) for each in run_json("list")["documents"] if each["path"].endswith("sea.txt")] == [
        other / "sea.txt"
    ]


def test_the_same_bytes_at_two_paths_are_two_documents_and_one_embedding(
    run_json: RunJson, folder: Path, tmp_path: Path
) -> None:
    first = run_json("ingest", folder)
    shutil.copytree(folder, tmp_path / "copy")
    report = run_json("ingest", tmp_path / "copy")
    assert (report["indexed"], report["documents"], report["tokens"]) == (3, 6, 0)
    assert first["tokens"] > 0


def test_a_dry_run_changes_nothing_and_parses_nothing(
    run_json: RunJson, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "parse_files", None)
        assert counts(run_json("ingest", folder, "--dry-run")) == (3, 0, 0, 0)
    assert not (tmp_path / "collection").exists()
    run_json("ingest", folder)
    (folder / "new.txt").write_text("new", encoding="utf-8")
    (folder / "sea.txt").write_text("changed", encoding="utf-8")
    (folder / "stars.md").unlink()
    with Collection.open(tmp_path / "collection") as collection:
        before = collection.generation
    assert counts(run_json("ingest", folder, "--dry-run", "--prune")) == (1, 1, 1, 1)
    with Collection.open(tmp_path / "collection") as collection:
        assert collection.generation == before


def test_include_and_exclude(run_json: RunJson, folder: Path) -> None:
    assert run_json("ingest", folder, "--include", "*.txt")["indexed"] == 1
    assert run_json("ingest", folder, "--exclude", "deep", "--exclude", "*.txt")["indexed"] == 1


def test_several_poolings_and_one_more_later(run_json: RunJson, folder: Path) -> None:
    run_json("ingest", folder, "--pooling", "mean,cls")
    assert [each["pooling"] for each in run_json("info")["encoders"]] == ["mean", "cls"]
    report = run_json("ingest", folder, "--pooling", "lmk")
    assert counts(report) == (0, 0, 3, 0)
    assert report["tokens"] > 0
    assert [(each["pooling"], each["missing"]) for each in run_json("info")["encoders"]] == [
        ("mean", 0),
        ("cls", 0),
        ("lmk", 0),
    ]
    (folder / "new.txt").write_text("new", encoding="utf-8")
    run_json("ingest", folder)
    assert all(each["missing"] == 0 for each in run_json("info")["encoders"])


def test_max_tokens_is_reported_for_each_document(run: Run, run_json: RunJson, folder: Path) -> None:
    characters = [len("".join(text.split())) for text in TEXTS]
    left = sum(characters) - 15
    assert f"{characters[2] - 5} tokens at its end left unread" in run("ingest", folder, "--max-tokens", "5").stderr
    with_tokens = [run_json("show", each["id"])["tokens"] for each in run_json("list")["documents"]]
    assert with_tokens == [{"mean": 5}] * 3
    assert sum(run_json("show", each["id"])["truncated"]["mean"] for each in run_json("list")["documents"]) == left
    (encoder,) = run_json("info")["encoders"]
    assert (encoder["max_tokens"], encoder["tokens"]) == (5, 15)
    assert encoder["truncated"] == left


def test_other_settings_than_the_collections_are_refused(run: Run, folder: Path) -> None:
    assert run("ingest", folder).exit_code == 0
    result = run("ingest", folder, "--granularity", "16")
    assert result.exit_code == 2
    assert "made with granularity 32, and this encoder has granularity 16" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["/no/such/place"], "There is no file or folder /no/such/place"),
        (["--pooling", "medium", "."], "Pooling 'medium' is not known"),
        (["--granularity", "0", "."], "granularity"),
        (["--no-such-option", "."], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_exits_with_2(run: Run, arguments: list[str], told: str, tmp_path: Path) -> None:
    result = run("ingest", *arguments)
    assert result.exit_code == 2
    assert told in result.output
    assert not (tmp_path / "collection").exists()


def test_a_named_file_that_is_missing_fails_beside_others(run_json: RunJson, folder: Path) -> None:
    report = run_json("ingest", folder, folder / "gone.txt", code=1)
    assert report["indexed"] == 3
    assert report["failed"] == [{"path": str(folder / "gone.txt"), "reason": "no such file or folder"}]


def test_a_link_to_itself_stops_nothing(run_json: RunJson, folder: Path) -> None:
    (folder / "self.txt").symlink_to("self.txt")
    report = run_json("ingest", folder, code=1)
    assert report["indexed"] == 3
    assert [Path(each["path"]).name for each in report["failed"]] == ["self.txt"]


def test_a_file_that_cannot_be_read_now_is_tried_again(
    run_json: RunJson, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size and time say nothing of why it could not be read; nothing is known of its bytes."""
    with pytest.MonkeyPatch.context() as patch:

        def unreadable(paths: Any, **_options: Any) -> Any:
            for path in paths:
                stat = path.stat()
                yield Parsed(path=path, size=stat.st_size, mtime_ns=stat.st_mtime_ns, reason="cannot be read")

        patch.setattr(pipeline, "parse_files", unreadable)
        assert len(run_json("ingest", folder, code=1)["failed"]) == 3
    assert counts(run_json("ingest", folder)) == (3, 0, 0, 0)


def test_an_indexed_file_that_cannot_be_hashed_is_reported(
    run_json: RunJson, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_json("ingest", folder)
    os.utime(folder / "sea.txt", ns=(1, 1))

    def refused(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(pipeline, "sha256", refused)
    report = run_json("ingest", folder, code=1)
    assert report["failed"] == [{"path": str(folder / "sea.txt"), "reason": "cannot be read: Permission denied"}]
    assert report["unchanged"] == 2


def test_only_unreadable_files_make_no_collection(run_json: RunJson, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"x")
    report = run_json("ingest", tmp_path / "picture.png", code=1)
    assert report["failed"][0]["reason"] == "no reader for files ending in '.png'"
    assert not (tmp_path / "collection").exists()


def test_a_missing_faiss_is_told_before_anything_is_embedded(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(Indexer, "add", None)
    result = run("ingest", folder)
    assert result.exit_code == 2
    assert 'pip install "lmk-rag[cpu]"' in result.stderr


def test_another_limit_is_refused_where_nothing_is_new_too(run: Run, folder: Path) -> None:
    run("ingest", folder, "--max-tokens", "5")
    result = run("ingest", folder, "--max-tokens", "0")
    assert result.exit_code == 2
    assert "made with max_tokens 5, and this encoder has max_tokens None" in result.stderr


def test_a_pooling_that_joins_later_takes_the_others_settings(run_json: RunJson, folder: Path) -> None:
    run_json("ingest", folder, "--pooling", "mean", "--granularity", "16", "--max-tokens", "10")
    run_json("ingest", folder, "--pooling", "lmk")
    assert [(each["granularity"], each["max_tokens"]) for each in run_json("info")["encoders"]] == [(16, 10)] * 2


def test_interrupted_while_a_pooling_is_added_it_is_told(
    run: Run, run_json: RunJson, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_json("ingest", folder)
    original = Indexer.add_missing

    def interrupted(self: Indexer) -> int:
        signal.raise_signal(signal.SIGINT)
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Indexer, "add_missing", interrupted)
        result = run("ingest", folder, "--pooling", "lmk")
    assert "Run the same command again to go on" in result.stderr
    assert "No lmk vector for 3 documents:" in run("verify").stderr
    run_json("ingest", folder)
    assert "no lmk vector" not in run("verify").stderr


def test_prune_removes_a_named_file_that_is_gone(run_json: RunJson, folder: Path) -> None:
    run_json("ingest", folder)
    (folder / "sea.txt").unlink()
    report = run_json("ingest", folder / "sea.txt", "--prune")
    assert (report["removed"], report["failed"], report["documents"]) == (1, [], 2)


def test_a_model_named_by_a_relative_path_is_found_from_anywhere(
    run_json: RunJson, folder: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_bert.parent)
    run_json("ingest", folder, "--model", tiny_bert.name, "--pooling", "mean", "--granularity", "8")
    monkeypatch.chdir(tmp_path)
    assert run_json("search", "whales", "-k", "1")["hits"][0]["path"] == str(folder / "sea.txt")


def test_interrupted_once_the_batch_is_kept_and_the_rest_comes_later(
    run: Run, run_json: RunJson, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "batches", lambda items, size, _: batches(items, size, 1))
    original = Indexer.add

    def interrupted(self: Indexer, documents: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return original(self, documents)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Indexer, "add", interrupted)
        result = run("ingest", folder)
    assert result.exit_code == 0
    assert "1 indexed" in result.stdout
    assert "Run the same command again to go on" in result.stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert counts(run_json("ingest", folder)) == (2, 0, 1, 0)


def test_a_second_writer_is_told_who_writes(run: Run, folder: Path, tmp_path: Path) -> None:
    with Collection.open(tmp_path / "collection", create=True) as collection, collection.write("reindex"):
        result = run("ingest", folder)
    assert result.exit_code == 2
    assert f"process {os.getpid()} (reindex" in result.stderr


def test_memory_holds_one_batch_however_many_files(tmp_path: Path, folder: Path, tiny_bert: Path) -> None:
    """No more than the batch and the parsers' look-ahead is ever read and not yet written."""
    many = tmp_path / "many"
    many.mkdir()
    for number in range(60):
        (many / f"{number:02}.txt").write_text(f"text number {number}", encoding="utf-8")
    taken, written, most = 0, 0, 0
    original_add, original_parse = Indexer.add, parse_files

    def counting_parse(paths: Any, **options: Any) -> Any:
        def counted() -> Any:
            nonlocal taken, most
            for path in paths:
                taken += 1
                most = max(most, taken - written)
                yield path

        return original_parse(counted(), **options)

    def counting_add(self: Indexer, documents: Any) -> Any:
        nonlocal written
        found = original_add(self, documents)
        written += len(documents)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMK_RAG_BASE", str(tiny_bert))
        patch.setattr(pipeline, "batches", lambda items, size, _: batches(items, size, 60))
        patch.setattr(pipeline, "parse_files", counting_parse)
        patch.setattr(Indexer, "add", counting_add)
        report = pipeline.ingest([many], tmp_path / "c", Options())
    assert report.indexed == 60
    assert most <= 8 + 5  # the look-ahead, and a batch of up to 60 characters with the file that overflows it


def test_text_in_another_language_is_indexed_with_a_warning(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    text = (
        "Der Leuchtturm steht am Rand der Insel und weist den Schiffen bei Nacht den Weg. Im Winter ist das Meer "
        "rau und die Fischer bleiben oft mehrere Tage lang im Hafen. Dann flicken sie ihre Netze und erzählen sich "
        "Geschichten von früher, als die Boote noch Segel trugen und der Hering in großen Schwärmen kam. "
    )
    (tmp_path / "de.txt").write_text(text * 3, encoding="utf-8")
    result = run("ingest", tmp_path / "de.txt")
    assert result.exit_code == 0
    assert "mostly not English (de)" in result.stderr
    document = run_json("show", 1)
    assert document["language"] == "de"
    assert any("not English" in warning for warning in document["warnings"])


def test_progress_counts_files_bytes_and_tokens(folder: Path, tmp_path: Path, tiny_bert: Path) -> None:
    class Recorder(Progress):
        def __init__(self) -> None:
            self.all = (0, 0)
            self.files, self.size, self.positions = 0, 0, 0

        def start(self, files: int, size: int) -> None:
            self.all = (files, size)

        def tokens(self, count: int) -> None:
            self.positions += count

        def finished(self, files: int, size: int) -> None:
            self.files, self.size = self.files + files, self.size + size

    progress = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMK_RAG_BASE", str(tiny_bert))
        report = pipeline.ingest([folder], tmp_path / "c", Options(workers=0), progress)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert progress.all == (progress.files, progress.size) == (3, size)
    assert progress.positions >= report.tokens


def test_a_stop_before_anything_writes_nothing(folder: Path, tmp_path: Path, tiny_bert: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMK_RAG_BASE", str(tiny_bert))
        report = pipeline.ingest([folder], tmp_path / "c", Options(workers=0), stop=stop)
    assert (report.indexed, report.documents, report.stopped) == (0, 0, True)


def test_vectors_in_the_collection_are_the_encoders(run_json: RunJson, folder: Path, tmp_path: Path) -> None:
    from lmk_rag.encoding.encoder import Encoder

    run_json("ingest", folder)
    with Collection.open(tmp_path / "collection") as collection:
        stored = collection.find(str(folder / "sea.txt"))
        assert stored is not None
        embedding = collection.embedding(1, stored.id)
    assert embedding is not None
    expected = Encoder.load().encode_documents(["The sea is deep. Whales sing in it."])[0].vector
    assert np.allclose(embedding.vector, expected, atol=1e-3)
