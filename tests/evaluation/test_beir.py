"""BEIR folders: read plain and packed, written and read back, limited, and mistakes named."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from lmk_rag.evaluation import beir
from lmk_rag.evaluation.beir import Dataset

CORPUS = [{"_id": "d1", "title": "Reels", "text": "about reels"}, {"_id": "d2", "text": "about tapes"}]
QUERIES = [
    {"_id": "q1", "text": "reel?"},
    {"_id": "q2", "text": "tape?", "metadata": {"kind": "title"}},
    {"_id": "q3", "text": "?"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\nq2\td1\t0\nq3\tgone\t1\n"


def folder_of(folder: Path, packed: bool, splits: tuple[str, ...] = ("test",)) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES)):
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path = folder / (f"{name}.jsonl.gz" if packed else f"{name}.jsonl")
        path.write_bytes(gzip.compress(text) if packed else text)
    for split in splits:
        path = folder / "qrels" / (f"{split}.tsv.gz" if packed else f"{split}.tsv")
        path.write_bytes(gzip.compress(QRELS.encode()) if packed else QRELS.encode())
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_reads_what_beir_writes(tmp_path: Path, packed: bool) -> None:
    dataset = beir.load(folder_of(tmp_path / "set", packed))

    assert dataset.name == "set"
    assert dataset.corpus == {"d1": "Reels\n\nabout reels", "d2": "about tapes"}
    assert dataset.qrels == {"q1": {"d1": 1}, "q2": {"d2": 2, "d1": 0}}
    assert dataset.queries == {"q1": "reel?", "q2": "tape?"}
    assert dataset.kinds == {"q2": "title"}


def test_the_split_is_chosen_and_a_wrong_one_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "set", False, ("dev", "test"))
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n")

    assert set(beir.load(folder, "dev").queries) == {"q2"}
    assert set(beir.load(folder, "test").queries) == {"q1", "q2"}
    with pytest.raises(FileNotFoundError, match=r"no train\.tsv: choose a split from dev, test"):
        beir.load(folder, "train")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    dataset = Dataset(
        name="set",
        corpus={"a": "ä\n\n\u2028text", "b": ""},
        queries={"q": "ask\tme"},
        qrels={"q": {"a": 2}},
        kinds={"q": "title"},
    )
    beir.save(dataset, tmp_path / "set", "dev")

    assert beir.load(tmp_path / "set", "dev") == dataset


def test_a_missing_file_and_a_set_without_judgements_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"corpus\.jsonl is missing"):
        beir.load(tmp_path)
    folder = folder_of(tmp_path / "set", False)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq9\td1\t1\n")
    with pytest.raises(ValueError, match="no judged query"):
        beir.load(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", b'{"_id": "d1", "text": "a"}\n{"_id": \n', r"corpus\.jsonl, line 2: no JSON"),
        ("corpus.jsonl", b'\n["d1", "a"]\n', r"corpus\.jsonl, line 2: .* is not an object with an"),
        ("corpus.jsonl", b'{"text": "a"}\n', r'line 1: .* is not an object with an "_id"'),
        ("corpus.jsonl", b'{"_id": "d1"}\n{"_id": "d1"}\n', "line 2: the _id 'd1' is there already"),
        ("queries.jsonl", '{"_id": "q1", "text": "ä"}'.encode("latin-1"), r"queries\.jsonl is not UTF-8"),
        ("qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\thigh\n", r"test\.tsv, line 2: .* between tabs"),
        ("qrels/test.tsv", b"q1\td1\t1\nq1\td2\tinf\n", r"line 2: .* a whole number between tabs"),
        ("qrels/test.tsv", b"q1\td1\t1\nq1\td2\t0.5\n", r"line 2: .* a whole number between tabs"),
        ("qrels/test.tsv", b"q1\td1\t1\nq2 d2 1\n", r"test\.tsv, line 2: 'q2 d2 1'"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    folder = folder_of(tmp_path / "set", False)
    (folder / name).write_bytes(content)

    with pytest.raises(ValueError, match=message):
        beir.load(folder)


def test_a_cut_archive_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "set", True)
    packed = folder / "corpus.jsonl.gz"
    for content in (packed.read_bytes()[:-12], b"no archive"):
        packed.write_bytes(content)
        with pytest.raises(ValueError, match=r"corpus\.jsonl\.gz is not a whole gzip file"):
            beir.load(folder)


def test_odd_files_that_can_be_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "set", False)
    corpus = (
        b'\xef\xbb\xbf{"_id": 1, "title": null, "text": "bad \\ud800 half"}\r\n\r\n{"_id": "2", "metadata": []}\r\n'
    )
    (folder / "corpus.jsonl").write_bytes(corpus)
    (folder / "queries.jsonl").write_text('{"_id": 7, "text": "ask", "metadata": ["x"]}\n')
    (folder / "qrels" / "test.tsv").write_text("7\t1\t2.0\n7\t2\t0\n")

    dataset = beir.load(folder)

    assert dataset.corpus == {"1": "bad \ufffd half", "2": ""}
    assert dataset.queries == {"7": "ask"}
    assert dataset.qrels == {"7": {"1": 2, "2": 0}}
    assert dataset.kinds == {}


def test_another_split_than_the_one_asked_for_is_not_taken(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "set", False, ("dev",))
    with pytest.raises(FileNotFoundError, match=r"no test\.tsv: choose a split from dev"):
        beir.load(folder)
    (folder / "qrels" / "dev.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"no test\.tsv: a BEIR data set has one"):
        beir.load(folder)


def test_a_draw_that_answers_no_query_is_refused() -> None:
    corpus = {str(at): f"text {at}" for at in range(50)}
    dataset = Dataset(name="set", corpus=corpus, queries={"q": "?"}, qrels={"q": {"49": 1}})
    drawn = next(n for n in range(1, 50) if "49" not in random.Random(n).sample(sorted(corpus), n))

    with pytest.raises(ValueError, match=f"No query of set is answered by one of {drawn} documents drawn from 50"):
        dataset.limited(drawn)


def test_a_limited_set_keeps_whole_documents_with_their_queries() -> None:
    corpus = {str(at): f"text {at}" for at in range(50)}
    dataset = Dataset(
        name="set",
        corpus=corpus,
        queries={f"q{key}": "?" for key in corpus},
        qrels={f"q{key}": {key: 1} for key in corpus},
        kinds={f"q{key}": "title" for key in corpus},
    )

    few = dataset.limited(7)

    assert len(few.corpus) == len(few.queries) == len(few.kinds) == 7
    assert {next(iter(grades)) for grades in few.qrels.values()} == set(few.corpus)
    assert few == dataset.limited(7)
    assert dataset.limited(50) is dataset


def test_names_are_found_below_the_folder_of_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMK_RAG_DATASETS", str(tmp_path))
    (tmp_path / "rfc" / "dev").mkdir(parents=True)

    assert beir.find("rfc", "dev") == tmp_path / "rfc" / "dev"
    with pytest.raises(FileNotFoundError, match=r"run scripts/build_rfc\.py"):
        beir.find("rfc", "test")
    with pytest.raises(FileNotFoundError, match=r"run scripts/build_manuals\.py"):
        beir.find("python-docs")
    with pytest.raises(FileNotFoundError, match="no data set 'nfcorpus'"):
        beir.find("nfcorpus")
