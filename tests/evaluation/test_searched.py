"""The product as a system: indexed once, searched by its own search, a second run only searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmk_rag.encoding.encoder import Encoder
from lmk_rag.evaluation.searched import run_searched
from lmk_rag.evaluation.systems import Options, run_system
from tests.evaluation.test_systems import adapters, dataset

__all__ = ["adapters"]


@pytest.fixture
def options(adapters: Path, tmp_path: Path) -> Options:
    return Options(cache=tmp_path / "cache", model=str(adapters), device="cpu")


@pytest.mark.parametrize("system", ["lmk+evidence", "hybrid", "hybrid+evidence"])
def test_every_query_gets_its_scores(options: Options, system: str) -> None:
    run = run_system(system, dataset(), options)

    assert set(run.scores) == set(dataset().queries)
    for found in run.scores.values():
        assert set(found) <= set(dataset().corpus)
        assert found
    if system != "lmk+evidence":  # the words decide: each topic's stand in one document alone
        assert all(max(found, key=lambda key: found[key]) == f"d{query[1:]}" for query, found in run.scores.items())


def test_a_second_run_embeds_no_document(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_searched("lmk+evidence", dataset(), options)

    def refuse(*_: Any) -> None:
        raise AssertionError("a document was embedded again")

    monkeypatch.setattr(Encoder, "encode_documents", refuse)
    again = run_searched("lmk+evidence", dataset(), options)

    assert again.scores == first.scores
    assert again.tokens == first.tokens


def test_an_interrupted_run_indexes_the_rest(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmk_rag.evaluation import searched

    monkeypatch.setattr(searched, "_DOCUMENTS_A_BATCH", 2)
    whole = Encoder.encode_documents
    calls: list[int] = []

    def breaking(self: Encoder, texts: Any, progress: Any = None) -> Any:
        calls.append(len(texts))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(self, texts, progress)

    monkeypatch.setattr(Encoder, "encode_documents", breaking)
    with pytest.raises(KeyboardInterrupt):
        run_searched("hybrid", dataset(), options)
    run = run_searched("hybrid", dataset(), options)

    assert calls == [2, 2, 2, 1]
    assert len(run.scores) == len(dataset().queries)


def test_the_dense_system_and_the_search_embed_a_document_once(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_system("lmk", dataset(), options)

    def refuse(*_: Any) -> None:
        raise AssertionError("a document was embedded again")

    monkeypatch.setattr(Encoder, "encode_documents", refuse)
    assert set(run_system("hybrid+evidence", dataset(), options).scores) == set(dataset().queries)
