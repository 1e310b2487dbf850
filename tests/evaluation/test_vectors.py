"""The vector cache: nothing is encoded twice, an interrupted run loses one batch, encoders do not mix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from lmk_rag.evaluation import vectors
from lmk_rag.evaluation.vectors import FloatArray, VectorCache


@dataclass(frozen=True)
class Made:
    vector: FloatArray
    evidence: FloatArray
    spans: npt.NDArray[np.int32]
    tokens: int
    truncated: int = 0


class Counting:
    """An encoder that makes a text's vector of its length and remembers what it was given."""

    def __init__(self, fails_after: int | None = None) -> None:
        self.seen: list[str] = []
        self.fails_after = fails_after

    def __call__(self, texts: Sequence[str]) -> list[Made]:
        if self.fails_after is not None and len(self.seen) + len(texts) > self.fails_after:
            raise KeyboardInterrupt
        self.seen += texts
        return [self.made(text) for text in texts]

    @staticmethod
    def made(text: str) -> Made:
        size = len(text)
        spans = np.array([[at, size] for at in range(size % 4)], np.int32).reshape(-1, 2)
        return Made(np.full(3, size, np.float32), np.full((size % 4, 3), size, np.float32), spans, size, size // 2)


TEXTS = {f"d{at}": "x" * (at + 1) for at in range(8)}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_CHARACTERS_A_BATCH", 8)


def test_vectors_come_in_the_order_of_the_texts(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, {"base": "a"}, evidence=True)
    found = cache.get(TEXTS, Counting())

    assert found.keys == tuple(TEXTS)
    assert found.matrix[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert np.bincount(found.owners, minlength=8).tolist() == [1, 2, 3, 0, 1, 2, 3, 0]
    assert all(found.evidence[at, 0] == found.matrix[owner, 0] for at, owner in enumerate(found.owners))
    assert found.tokens == sum(range(1, 9))
    cache.close()


def test_a_second_run_encodes_nothing_and_keeps_the_time(tmp_path: Path) -> None:
    first = VectorCache(tmp_path, {"base": "a"}, evidence=False)
    made = first.get(TEXTS, Counting())
    first.close()
    encode = Counting()
    second = VectorCache(tmp_path, {"base": "a", "model": "another name of the same"}, evidence=False)
    again = second.get({key: TEXTS[key] for key in reversed(TEXTS)}, encode)
    second.close()

    assert encode.seen == []
    assert again.keys == tuple(reversed(TEXTS))
    assert again.matrix.tolist() == made.matrix[::-1].tolist()
    assert again.seconds == pytest.approx(made.seconds)
    assert len(again.evidence) == 0


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, {"base": "a"}, evidence=False)
    broken = Counting(fails_after=4)
    with pytest.raises(KeyboardInterrupt):
        cache.get(TEXTS, broken)
    cache.close()
    assert broken.seen
    rest = Counting()
    cache = VectorCache(tmp_path, {"base": "a"}, evidence=False)
    told: list[tuple[int, int]] = []
    cache.get(TEXTS, rest, lambda done, everything: told.append((done, everything)))
    cache.close()

    assert sorted(broken.seen + rest.seen) == sorted(TEXTS.values())
    assert told[-1] == (8, 8)
    assert told[0][0] > len(broken.seen)


def test_another_fingerprint_is_another_file(tmp_path: Path) -> None:
    for fingerprint in ({"base": "a"}, {"base": "b"}, {"base": "a", "max_tokens": 5}):
        encode = Counting()
        cache = VectorCache(tmp_path, fingerprint, evidence=False)
        cache.get(TEXTS, encode)
        cache.close()
        assert len(encode.seen) == len(TEXTS)


def test_equal_texts_are_encoded_once(tmp_path: Path) -> None:
    encode = Counting()
    cache = VectorCache(tmp_path, {"base": "a"}, evidence=False)
    found = cache.get({"a": "same", "b": "same", "c": "other text"}, encode)
    cache.close()

    assert sorted(encode.seen) == ["other text", "same"]
    assert found.matrix[0].tolist() == found.matrix[1].tolist()


def test_whole_embeddings_come_back_in_order_and_are_made_once(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, {"base": "a"}, evidence=True)
    cache.get({"a": "xxx", "b": "xxxx"}, Counting())
    encode = Counting()
    found = cache.embeddings(["xxxxx", "xxx", "xxxxx"], encode)
    cache.close()

    assert encode.seen == ["xxxxx"]
    for text, each in zip(["xxxxx", "xxx", "xxxxx"], found, strict=True):
        made = Counting.made(text)
        assert each.vector.tolist() == made.vector.tolist()
        assert each.evidence.tolist() == made.evidence.tolist()
        assert each.evidence.dtype == np.float32
        assert each.spans.tolist() == made.spans.tolist()
        assert (each.tokens, each.truncated) == (made.tokens, made.truncated)
