"""Fusion by hand-computed numbers."""

import math

import pytest

from lmk_rag.fusion import fuse, standardise


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
    # bm25 +1/-1 times 1, dense -1/+1 times 0.5; evidence has one value alone and cannot tell them apart.
    assert fused == pytest.approx({1: 0.5, 2: -0.5})


def test_a_document_of_one_list_alone_is_ranked_too() -> None:
    fused = fuse({"bm25": {1: 9.0, 2: 3.0}, "dense": {3: 0.8, 1: 0.2}})
    assert set(fused) == {1, 2, 3}
    assert max(fused, key=lambda document: fused[document]) == 1
