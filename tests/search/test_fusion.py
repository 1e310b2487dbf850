"""Fusion by hand-computed numbers."""

import math

import pytest

from lmk_rag import fusion
from lmk_rag.fusion import FEATURES, LEARNED, WEIGHTS, fuse, learned_weights, reciprocal, standardise


def test_scores_are_standardised_by_hand() -> None:
    # mean 2, deviation sqrt(2/3)
    assert standardise([1, 2, 3]) == pytest.approx([-math.sqrt(1.5), 0, math.sqrt(1.5)])


def test_a_document_that_a_list_lacks_counts_as_its_lowest() -> None:
    assert standardise([5.0, None, 1.0]) == pytest.approx(standardise([5.0, 1.0, 1.0]))


@pytest.mark.parametrize("scores", [[], [None, None], [3.0], [2.0, 2.0]])
def test_nothing_to_tell_apart_gives_zeros(scores: list[float | None]) -> None:
    assert standardise(scores) == [0.0] * len(scores)


def test_the_sum_is_weighted_by_hand() -> None:
    fused = fuse({"bm25": {1: 2.0, 2: 0.0}, "dense": {2: 0.9, 1: 0.1}, "evidence": {1: 0.5}})
    # bm25 +1/-1 times 1, dense -1/+1 times 0.3; evidence has one value alone and cannot tell them apart.
    assert fused == pytest.approx({1: 0.7, 2: -0.7})


def test_a_document_of_one_list_alone_is_ranked_too() -> None:
    fused = fuse({"bm25": {1: 9.0, 2: 3.0}, "dense": {3: 0.8, 1: 0.2}})
    assert set(fused) == {1, 2, 3}
    assert max(fused, key=lambda document: fused[document]) == 1


def test_reciprocal_rank_by_hand() -> None:
    fused = reciprocal({"bm25": {1: 9.0, 2: 3.0, 3: 0.0}, "dense": {2: 0.8, 3: 0.5, 1: 0.1}})
    assert fused == pytest.approx({1: 1 / 61 + 1 / 63, 2: 1 / 62 + 1 / 61, 3: 1 / 62})


def test_equal_scores_share_a_rank() -> None:
    assert reciprocal({"dense": {1: 0.5, 2: 0.5, 3: 0.1}}) == pytest.approx({1: 1 / 61, 2: 1 / 61, 3: 1 / 63})


def test_reciprocal_rank_stays_in_its_documented_range() -> None:
    assert reciprocal({name: {1: 1.0} for name in WEIGHTS}) == pytest.approx({1: 3 / 61})


def test_learned_weights_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"bm25": (1.0, 2.0, 0.0, 0.0, 0.0, -1.0), "dense": (0.5,) + (0.0,) * 5}
    monkeypatch.setattr(fusion, "LEARNED", table)
    assert learned_weights((0.5, 1, 1, 1, 0.25)) == pytest.approx({"bm25": 1.75, "dense": 0.5})


def test_the_learned_table_has_a_number_for_each_feature_of_each_list() -> None:
    assert set(LEARNED) == set(WEIGHTS)
    assert {len(numbers) for numbers in LEARNED.values()} == {1 + len(FEATURES)}
