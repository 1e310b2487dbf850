"""Evidence against plain loops and hand-computed numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmk_rag.encoding.encoder import Embedding
from lmk_rag.evidence import (
    MOST_QUERY_VECTORS,
    average_neighbours,
    fitting,
    maxsim,
    quantize,
    query_vectors,
    similarities,
    store,
)


def unit(rows: int, dimension: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def embedding(rows: int, dimension: int = 384) -> Embedding:
    spans = np.array([(i * 130, i * 130 + 128) for i in range(rows)], dtype=np.int32).reshape(-1, 2)
    return Embedding(unit(1, dimension)[0], unit(rows, dimension, 1), spans, tokens=32 * rows, truncated=0)


def test_neighbours_are_averaged_by_hand() -> None:
    evidence = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    spans = np.array([[0, 5], [6, 9], [10, 12]], dtype=np.int32)
    joint, joint_spans = average_neighbours(evidence, spans, 2)
    assert joint == pytest.approx(np.array([[math.sqrt(0.5), math.sqrt(0.5)], [1, 0]]))
    assert joint_spans.tolist() == [[0, 9], [10, 12]]


@given(st.integers(0, 40), st.integers(1, 9))
def test_each_group_is_the_direction_of_its_mean(rows: int, group: int) -> None:
    evidence, spans = unit(rows, 8), np.array([(i, i + 1) for i in range(rows)], dtype=np.int32).reshape(-1, 2)
    joint, joint_spans = average_neighbours(evidence, spans, group)
    assert len(joint) == len(joint_spans) == math.ceil(rows / group)
    for place in range(len(joint)):
        part = evidence[place * group : (place + 1) * group]
        mean = part.mean(axis=0)
        assert joint[place] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
        assert joint_spans[place].tolist() == [place * group, min(rows, (place + 1) * group)]


def test_int8_by_hand() -> None:
    rounded, scales = quantize(np.array([[0.5, -1.0, 0.004], [0, 0, 0]], dtype=np.float32))
    assert rounded.tolist() == [[64, -127, 1], [0, 0, 0]]  # 0.5 * 127 = 63.5, rounded to even; 0.004 * 127 = 0.508
    assert scales == pytest.approx([1 / 127, 0])


def test_int8_costs_next_to_nothing() -> None:
    vectors = unit(200, 384)
    rounded, scales = quantize(vectors)
    back = rounded.astype(np.float32) * scales[:, None]
    cosines = (back * vectors).sum(axis=1) / np.linalg.norm(back, axis=1)
    assert cosines.min() > 0.999


@pytest.mark.parametrize("rows", [1, 2, 7, 100, 1001])
@pytest.mark.parametrize("characters_a_landmark", [60, 130, 400])
def test_what_is_kept_stays_within_the_ratio(rows: int, characters_a_landmark: int) -> None:
    made = embedding(rows)
    text = "x" * (rows * characters_a_landmark)
    kept = store(made, text, ratio=1.6)
    size = kept.vector.nbytes + kept.evidence.nbytes + kept.scales.nbytes + kept.spans.nbytes
    assert size <= 1.6 * len(text) or len(kept.evidence) == 1
    assert kept.spans[0, 0] == made.spans[0, 0]
    assert kept.spans[-1, 1] == made.spans[-1, 1]
    assert kept.tokens == made.tokens


def test_pairs_of_landmarks_are_kept_of_english() -> None:
    kept = store(embedding(100), "x" * 14_000)
    assert len(kept.evidence) == 50


def test_a_roomy_ratio_keeps_every_landmark() -> None:
    assert len(store(embedding(10), "x" * 1_300, ratio=10.0).evidence) == 10


def test_maxsim_against_a_plain_loop() -> None:
    query, made = unit(3, 384, 5), embedding(9)
    kept = store(made, "x" * 100_000)
    expected = [max(float(q @ e) for e in made.evidence) for q in query]
    assert maxsim(similarities(query, kept)) == pytest.approx(sum(expected) / 3, abs=0.005)


def test_cosines_stay_in_bounds() -> None:
    kept = store(embedding(4), "x" * 100_000)
    cosines = similarities(unit(4, 384, 1), kept)
    assert cosines.max() <= 1
    assert np.diag(cosines) == pytest.approx(np.ones(4), abs=0.01)


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 500])
def test_a_long_query_is_asked_in_few_stretches(rows: int) -> None:
    evidence = unit(rows, 8)
    asked = query_vectors(evidence)
    assert len(asked) <= MOST_QUERY_VECTORS
    if rows <= MOST_QUERY_VECTORS:
        assert np.array_equal(asked, evidence)
    else:
        first = evidence[: math.ceil(rows / MOST_QUERY_VECTORS)].mean(axis=0)
        assert asked[0] == pytest.approx(first / np.linalg.norm(first), abs=1e-5)


def test_what_is_kept_is_what_fits_in_int8() -> None:
    made, text = embedding(50), "x" * 6_000
    vectors, spans = fitting(made, text)
    kept = store(made, text)
    assert np.array_equal(kept.spans, spans)
    assert kept.evidence * kept.scales[:, None] == pytest.approx(vectors, abs=0.002)
