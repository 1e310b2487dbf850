"""Near copies: the sketch against the plain definition, and what is folded and what is not."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.near_duplicates import SAME, NearDuplicates, similarity, sketch
from lmk_rag.search import Searcher

Make = Callable[..., Collection]

UNLIKE = np.eye(2, dtype=np.float32)
CHANCE = random.Random(4)
WORDS = [f"{CHANCE.choice('bcdfgklm')}{CHANCE.choice('aeiou')}{CHANCE.choice('nrst')}{n}" for n in range(900)]


def prose(words: int, seed: int) -> str:
    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(words))


def rewritten(text: str, every: int) -> str:
    """Replace each so many-th word."""
    return " ".join("other" if n % every == every - 1 else word for n, word in enumerate(text.split()))


def jaccard(one: str, other: str) -> float:
    """The plain definition."""
    runs = []
    for text in (one, other):
        words = re.findall(r"\w+", text.lower())
        runs.append({tuple(words[n : n + 5]) for n in range(len(words) - 4)})
    return len(runs[0] & runs[1]) / len(runs[0] | runs[1])


@pytest.mark.parametrize("words", [40, 900, 9000])
@pytest.mark.parametrize("every", [7, 20, 100])
def test_similarity_is_the_share_of_common_runs(words: int, every: int) -> None:
    one = prose(words, words)
    other = rewritten(one, every)
    wrong = 0 if words <= 900 else 0.035  # 2,048 hashes: some 3 standard deviations
    assert similarity(sketch(one), sketch(other)) == pytest.approx(jaccard(one, other), abs=wrong + 1e-9)


def test_a_text_and_its_first_half() -> None:
    one = prose(9000, 11)
    other = " ".join(one.split()[:4500])
    assert similarity(sketch(one), sketch(other)) == pytest.approx(jaccard(one, other), abs=0.04)


def test_case_and_layout_do_not_count_but_order_does() -> None:
    assert similarity(sketch("One two, three\n\nfour FIVE six"), sketch("one two three four five   six.")) == 1
    assert similarity(sketch("one two three four five six"), sketch("six five four three two one")) == 0
    assert similarity(sketch(""), sketch("")) == 0
    assert similarity(sketch("one two"), sketch("one two")) == 1


def add(collection: Collection, *documents: Document) -> list[int]:
    with collection.write("test"), collection.transaction() as transaction:
        return [transaction.put(document, {})[0] for document in documents]


def test_the_same_file_at_two_paths_is_one_hit(make_collection: Make) -> None:
    text = prose(300, 1)
    collection = make_collection([text, prose(300, 2), text])
    for mode in ("hybrid", "dense", "bm25"):
        hits = Searcher(collection).search(text[:60], mode=mode).hits
        first = next(hit for hit in hits if hit.id in (1, 3))
        (copy,) = first.folded
        assert {first.id, copy.id} == {1, 3}
        assert copy.similarity == 1
        assert copy.path == f"/{copy.id - 1}.txt"
        assert copy.score <= first.score
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert len({hit.id for hit in hits} & {1, 3}) == 1


@pytest.mark.parametrize("poolings", [("mean",), ()])
def test_nearly_the_same_is_folded_and_a_revision_is_not(
    tmp_path: Path, make_collection: Make, poolings: tuple[str, ...]
) -> None:
    text = prose(600, 3)
    texts = [text, rewritten(text, 120), rewritten(text, 40)]
    collection = make_collection(texts if poolings else [], poolings)
    if not poolings:
        add(collection, *(Document(external_id=f"/{n}.txt", pages=(each,)) for n, each in enumerate(texts)))
    assert jaccard(texts[0], texts[1]) > SAME > jaccard(texts[0], texts[2])
    hits = Searcher(collection).search(" ".join(text.split()[:4]), mode="bm25").hits
    assert {hit.id for hit in hits} in ({1, 3}, {2, 3})
    assert [each.id for hit in hits for each in hit.folded] in ([1], [2])


def test_k_distinct_hits_come_back_however_many_copies_stand_before_them(make_collection: Make) -> None:
    copied = "the deep blue sea is wide and full of whales"
    others = [f"a sea of {word} lies far away from here, number {n}" for n, word in enumerate(["ice", "sand", "fog"])]
    collection = make_collection([copied] * 130 + others)
    for mode in ("bm25", "dense", "hybrid"):
        hits = Searcher(collection).search("blue sea whales", k=4, mode=mode).hits
        assert len(hits) == 4
        assert len({hit.passages[0].text for hit in hits}) == 4
    assert sum(len(hit.folded) for hit in hits) == 129


def test_ranks_by_score_alone_keep_the_copies(make_collection: Make) -> None:
    searcher = Searcher(make_collection(["the blue sea", "the blue sea", "green hills"]))
    assert sorted(searcher.rank("sea", mode="bm25").scores) == [1, 2]
    ranking = searcher.rank("sea")
    assert [document for document, _ in ranking.best()] == [1, 2, 3]
    assert ranking.scores[1] == ranking.scores[2]
    assert searcher.rank("  ").best() == []


def test_texts_are_read_only_where_nothing_cheaper_tells(make_collection: Make) -> None:
    collection = make_collection([prose(300, 5), prose(100, 6), prose(300, 7)])
    read: list[int] = []

    def text(document_id: int) -> str:
        read.append(document_id)
        return collection.text(document_id)

    one, shorter, other = (row for n in (1, 2, 3) if (row := collection.get(n)))
    copies = NearDuplicates(text)
    unlike = {1: UNLIKE[0], 3: UNLIKE[1]}
    assert copies.compare(one, shorter, {}, {}) == 0
    assert copies.compare(one, other, unlike, {}) == 0
    assert copies.compare(one, replace(other, text_sha256=one.text_sha256), {}, {}) == 1
    assert read == []
    assert copies.compare(one, other, {1: UNLIKE[0], 3: UNLIKE[0]}, {}) < 0.1
    assert copies.compare(one, other, {}, {}) < 0.1
    assert read == [1, 3]  # each once
