"""BEIR folders: read plain and packed, written and read back, limited, and mistakes named."""

from __future__ import annotations

import gzip
import json
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
