"""Measures against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from lmk_rag.evaluation import metrics

QRELS = {"first": {"a": 1}, "second": {"b": 1}, "two": {"c": 1, "d": 1}, "deep": {"e": 1}, "nothing": {"f": 1}}


def ranked(*documents: str) -> dict[str, float]:
    return {document: 100.0 - at for at, document in enumerate(documents)}


RUN = {
    "first": ranked("a", "x", "y"),
    "second": ranked("x", "b", "y"),
    "two": ranked("x", "c", "y", "d"),
    "deep": ranked(*(f"x{at}" for at in range(19)), "e"),
    "nobody asked": ranked("a"),
}


def test_measures_by_hand() -> None:
    found = metrics.measure(QRELS, RUN)

    assert found["ndcg@10"] == pytest.approx(
        {
            "first": 1.0,
            "second": 1 / math.log2(3),
            "two": (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)),
            "deep": 0.0,
            "nothing": 0.0,
        }
    )
    assert found["mrr@10"] == pytest.approx({"first": 1, "second": 0.5, "two": 0.5, "deep": 0, "nothing": 0})
    assert found["recall@10"] == pytest.approx({"first": 1, "second": 1, "two": 1, "deep": 0, "nothing": 0})
    assert found["recall@100"] == pytest.approx({"first": 1, "second": 1, "two": 1, "deep": 1, "nothing": 0})
    assert metrics.mean(found["mrr@10"]) == pytest.approx(0.4)


def test_equal_scores_are_ranked_alike_by_every_measure() -> None:
    run = {"q": {"b": 0.9, "a": 0.9, "c": 0.1}}  # equal ones by id
    first, second = metrics.measure({"q": {"a": 1}}, run), metrics.measure({"q": {"b": 1}}, run)
    assert {name: first[name]["q"] for name in ("ndcg@10", "recall@1", "mrr@10")} == dict.fromkeys(
        ("ndcg@10", "recall@1", "mrr@10"), 1.0
    )
    assert second["ndcg@10"]["q"] == pytest.approx(1 / math.log2(3))
    assert (second["recall@1"]["q"], second["mrr@10"]["q"]) == (0.0, 0.5)


def test_queries_are_grouped_by_the_best_document_they_ask_for() -> None:
    assert metrics.groups_of({"q": {"a": 1, "b": 3, "c": 2}, "r": {"z": 1}}) == {"q": "b", "r": "z"}


def test_interval_is_that_of_the_binomial_for_independent_queries() -> None:
    # 400 queries, half of them 1: the average has a standard error of 0.025
    values = {str(at): float(at % 2) for at in range(400)}
    low, high = metrics.interval(values, {query: query for query in values})

    assert low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.005)
    assert high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.005)


def test_interval_is_wider_where_queries_share_a_document() -> None:
    # four copies of each query bring no new knowledge: as wide as 100 independent ones
    values = {str(at): float(at % 2) for at in range(400)}
    shared = {query: str(int(query) % 100) for query in values}
    low, high = metrics.interval(values, shared)

    assert high - low == pytest.approx(2 * 1.96 * 0.05, abs=0.01)


def test_interval_of_a_constant_is_a_point() -> None:
    assert metrics.interval({"a": 0.25, "b": 0.25}, {"a": "x", "b": "y"}) == (0.25, 0.25)


def test_paired_test_is_the_exact_one_for_few_documents() -> None:
    # five documents, all better by the same: only the two sign patterns of thirty-two are as extreme
    a = {str(at): 0.75 for at in range(5)}
    b = {str(at): 0.25 for at in range(5)}
    difference, p = metrics.paired(a, b, {query: query for query in a})

    assert difference == pytest.approx(0.5)
    assert p == pytest.approx(2 / 32, abs=0.02)


def test_paired_test_counts_documents_not_queries() -> None:
    a = {str(at): 0.75 for at in range(50)}
    b = {str(at): 0.25 for at in range(50)}
    _, apart = metrics.paired(a, b, {query: query for query in a})
    _, together = metrics.paired(a, b, dict.fromkeys(a, "one document"))

    assert apart < 0.01
    assert together == pytest.approx(1)


def test_paired_test_of_equal_systems() -> None:
    a = {"x": 0.5, "y": 1.0}
    assert metrics.paired(a, a, {"x": "x", "y": "y"}) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("tokens", "row"),
    [(1, "512"), (512, "512"), (513, "1k"), (1024, "1k"), (2048, "2k"), (4097, "8k"), (16384, "16k"), (16385, "32k+")],
)
def test_rows_of_the_table_by_length(tokens: int, row: str) -> None:
    assert metrics.length_name(tokens) == row


def test_table_by_length_averages_queries() -> None:
    values = {"q": 1.0, "r": 0.0, "s": 0.5}
    table = metrics.by_length(values, {"q": "a", "r": "a", "s": "b"}, {"a": 100, "b": 3000})

    one = {"mean": 0.5, "ci95": [0.5, 0.5]}  # one document each, so that there is nothing to draw
    assert table == {"512": {**one, "queries": 2}, "4k": {**one, "queries": 1}}
    two = metrics.by_length(values, {"q": "a", "r": "c", "s": "b"}, {"a": 100, "b": 3000, "c": 200})
    assert two["512"] == {"mean": 0.5, "ci95": [0.0, 1.0], "queries": 2}


def test_averages_by_kind() -> None:
    assert metrics.by_kind({"q": 1.0, "r": 0.0, "s": 0.5}, {"q": "title", "r": "title"}) == {"title": 0.5}
