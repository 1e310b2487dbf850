"""Systems and reports on a tiny data set with a tiny model."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from lmk_rag.encoding.encoder import Encoder
from lmk_rag.evaluation import beir, longembed, report, systems
from lmk_rag.evaluation.beir import Dataset
from lmk_rag.evaluation.cli import eval_command
from lmk_rag.evaluation.extras import require
from lmk_rag.evaluation.systems import Options, best_evidence, best_of, run_system
from lmk_rag.evaluation.vectors import Vectors

TOPICS = ["winding of tape", "pump and valve", "brake of a wheel", "crank and shaft", "gauge and lever"]


def dataset() -> Dataset:
    corpus = {f"d{at}": f"{topic}. " * 12 + "The end." for at, topic in enumerate(TOPICS)}
    return Dataset(
        name="machines",
        corpus=corpus,
        queries={f"q{at}": topic for at, topic in enumerate(TOPICS)},
        qrels={f"q{at}": {f"d{at}": 1} for at in range(len(TOPICS))},
        kinds={f"q{at}": "title" if at % 2 else "heading" for at in range(len(TOPICS))},
    )


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(cache=tmp_path / "cache", device="cpu")


@pytest.fixture
def adapters(tiny_bert: Path, tmp_path: Path) -> Path:
    """A folder as training leaves it: one subfolder a pooling, here of whole tiny models."""
    import shutil

    for pooling in ("lmk", "mean", "cls"):
        folder = tmp_path / "runs" / pooling / "adapter"
        shutil.copytree(tiny_bert, folder)
        (folder / "lmk_rag.json").write_text(json.dumps({"pooling": pooling, "granularity": 8, "window": 64}))
    return tmp_path / "runs"


def test_bm25_finds_the_words(options: Options) -> None:
    run = run_system("bm25", dataset(), options)

    assert all(max(found, key=lambda key: found[key]) == f"d{query[1:]}" for query, found in run.scores.items())
    assert all(score > 0 for found in run.scores.values() for score in found.values())


@pytest.mark.parametrize("system", ["lmk", "mean", "cls", "mcls"])
def test_dense_scores_are_the_encoders_cosines(adapters: Path, options: Options, system: str) -> None:
    options = Options(cache=options.cache, model=str(adapters), device="cpu")
    run = run_system(system, dataset(), options)
    trained = "cls" if system == "mcls" else system
    encoder = Encoder.load(str(adapters / trained / "adapter"), device="cpu")
    encoder = encoder if system == trained else systems.load_encoder(system, options)

    assert encoder.pooling == system
    query = encoder.encode_queries([TOPICS[2]])[0].vector
    for key, text in dataset().corpus.items():
        document = encoder.encode_documents([text])[0].vector
        assert run.scores["q2"][key] == pytest.approx(float(query @ document), abs=2e-2)
    assert run.tokens == sum(each.tokens for each in encoder.encode_documents([*dataset().corpus.values()]))


def test_an_adapter_for_another_pooling_is_told_and_mcls_is_not(
    adapters: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beir.save(dataset(), tmp_path / "machines", "test")

    def told(system: str, model: Path) -> str:
        eval_command(
            str(tmp_path / "machines"), systems=[system], model=str(model), cache=tmp_path / "cache", device="cpu",
            quiet=True,
        )  # fmt: skip
        return capsys.readouterr().err

    assert "mean: " in (notice := told("mean", adapters / "lmk" / "adapter"))
    assert "trained for lmk" in notice
    assert told("mean", adapters) == ""
    assert told("mcls", adapters) == ""
    assert "trained for lmk" in told("mcls", adapters / "lmk" / "adapter")


def test_documents_without_a_word_are_found_by_nothing(options: Options) -> None:
    empty = Dataset(name="empty", corpus={"a": "", "b": "--"}, queries={"q": "tape"}, qrels={"q": {"a": 1}})

    assert run_system("bm25", empty, options).scores == {"q": {}}


def test_best_evidence_is_the_plain_maximum() -> None:
    rng = np.random.default_rng(0)
    evidence = rng.normal(size=(6, 4)).astype(np.float16)
    owners = np.array([0, 0, 2, 2, 2, 3])  # document 1 has none
    documents = Vectors(("a", "b", "c", "d"), np.zeros((4, 4), np.float32), evidence, owners, 0, 0.0)
    queries = rng.normal(size=(2, 4)).astype(np.float32)

    scores = best_evidence(queries, documents)

    for query in range(2):
        for document in (0, 2, 3):
            plain = max(
                float(queries[query] @ evidence[at].astype(np.float32)) for at in np.flatnonzero(owners == document)
            )
            assert scores[query, document] == pytest.approx(plain, rel=1e-5)
        assert scores[query, 1] == -1


def test_best_of_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "DEPTH", 2)
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.4]], dtype=np.float32)

    assert {query: set(found) for query, found in best_of(scores, ("q", "r"), ("a", "b", "c")).items()} == {
        "q": {"b", "c"},
        "r": {"a", "c"},
    }


def test_character_chunks_cover_the_text_and_overlap() -> None:
    text = "".join(chr(0x4E00 + at) for at in range(2500))
    chunks = systems.character_chunks(text)

    assert [len(chunk) for chunk in chunks] == [1000, 1000, 900]
    assert chunks[0][-200:] == chunks[1][:200]
    assert chunks[0] + chunks[1][200:] + chunks[2][200:] == text
    assert systems.character_chunks("short") == ["short"]
    assert systems.character_chunks("") == [""]


def test_token_chunks_cover_the_text(adapters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "CHUNK_TOKENS", 7)
    encoder = Encoder.load(str(adapters / "mean" / "adapter"), device="cpu")
    text = "a bcd efg hij klm nop qrs"
    chunks = systems._token_chunks(encoder, text)

    assert "".join(chunks) == text
    assert [len(next(encoder.tokenizer.tokens([chunk]))) for chunk in chunks] == [7, 7, 5]
    assert systems._token_chunks(encoder, "") == [""]


def test_a_limit_of_tokens_is_the_documents_not_the_chunks(adapters: Path) -> None:
    encoder = Encoder.load(str(adapters / "mean" / "adapter"), device="cpu")

    assert systems._first_tokens(encoder, "ab cd ef", 3) == "ab c"  # a token a letter
    assert systems._first_tokens(encoder, "ab cd ef", 100) == "ab cd ef"
    assert systems._first_tokens(encoder, "ab cd ef", None) == "ab cd ef"
    assert systems._first_tokens(encoder, "", 3) == ""


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no system 'bm26'"):
        eval_command(str(tmp_path), systems=["bm26"])
    with pytest.raises(ValueError, match="no split 'tests'"):
        eval_command(str(tmp_path), split="tests", systems=["bm25"])


def test_a_pooling_finds_its_adapter_in_a_folder_of_several(adapters: Path) -> None:
    assert systems.model_for("mcls", str(adapters)) == str(adapters / "cls" / "adapter")
    assert systems.model_for("lmk", str(adapters / "lmk" / "adapter")) == str(adapters / "lmk" / "adapter")


@pytest.fixture
def made(adapters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_bert: Path) -> dict[str, Any]:
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))  # for the table by length
    beir.save(dataset(), tmp_path / "set", "test")
    return eval_command(
        str(tmp_path / "set"),
        systems=["bm25", "base-mean", "lmk", "lmk-maxsim", "chunks"],
        model=str(adapters),
        cache=tmp_path / "cache",
        device="cpu",
        quiet=True,
    )


def test_report_has_the_documented_keys(made: dict[str, Any]) -> None:
    found = made
    json.dumps(found)  # plain values only

    assert set(found) == {"dataset", "results", "paired", "paired_within"}
    assert [row["system"] for row in found["results"]] == ["bm25", "base-mean", "lmk", "lmk-maxsim", "chunks"]
    for row in found["results"]:
        assert set(row) == {
            *("system", "ndcg@10", "recall@1", "recall@10", "recall@100", "mrr@10"),
            *("ci95", "by_length", "by_kind", "seconds", "tokens"),
        }
        low, high = row["ci95"]["ndcg@10"]
        assert low <= row["ndcg@10"] <= high
        assert row["recall@100"] == 1
    assert found["results"][0]["ndcg@10"] == 1
    assert len(found["paired"]) == 10
    first = found["paired"][0]
    assert first["difference"] == pytest.approx(found["results"][0]["ndcg@10"] - found["results"][1]["ndcg@10"])


def test_differences_within_kinds_and_long_documents() -> None:
    data = Dataset(
        name="set",
        corpus={"short": "", "long": "", "other": ""},
        queries={"q1": "", "q2": "", "q3": ""},
        qrels={"q1": {"short": 1}, "q2": {"long": 1}, "q3": {"long": 1}},
        kinds={"q1": "title", "q2": "title", "q3": "heading"},
    )
    right = {query: dict.fromkeys(found, 1.0) for query, found in data.qrels.items()}
    second = {query: {"other": 2.0, **found} for query, found in right.items()}  # nDCG 1 / log2(3)
    runs = {"a": right, "b": right | {"q2": second["q2"], "q3": {}}}
    lengths = {"short": 4096, "long": 4097, "other": 1}

    found = report.compare("set", [data], ["a", "b"], lambda name, _: systems.Run(runs[name], 0, 0), lengths)

    lost = 1 - 1 / math.log2(3)
    wanted = {"heading": (1, 1), "title": (2, lost / 2), "over 4k": (2, (1 + lost) / 2)}
    wanted |= {"over 4k, heading": (1, 1), "over 4k, title": (1, lost)}
    told = {each["within"]: (each["queries"], each["difference"]) for each in found["paired_within"]}
    assert told == {part: (queries, pytest.approx(value)) for part, (queries, value) in wanted.items()}


def test_tables_say_the_same(made: dict[str, Any]) -> None:
    out = io.StringIO()
    report.show(made, Console(file=out, width=200))

    text = out.getvalue()
    assert "set: averages" in text
    assert "lmk-maxsim" in text
    assert f"{made['results'][2]['ndcg@10']:.3f}" in text
    assert "heading" in text


def test_lengths_of_a_generated_task_are_averaged_and_documents_compete_within_their_own(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    monkeypatch.setattr(longembed, "LENGTHS", (256, 512))

    found = eval_command("passkey", systems=["bm25"], cache=tmp_path, device="cpu", quiet=True)

    assert found["dataset"] == "passkey"
    assert found["results"][0]["ndcg@10"] == 1  # names are rare words
    assert sum(row["queries"] for row in found["results"][0]["by_length"].values()) == 100


def test_a_missing_library_is_named() -> None:
    with pytest.raises(ValueError, match=r"no_such_library.*pip install 'lmk-rag\[eval\]'"):
        require("no_such_library")
