"""Measures a query, averages with intervals, a paired test, a table by document length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lmk_rag.evaluation.extras import require

MEASURES = {"ndcg@10": "nDCG@10", "recall@1": "R@1", "recall@10": "R@10", "recall@100": "R@100", "mrr@10": "RR@10"}
"""What is measured, and what ``ir_measures`` calls it."""
TITLES = {name: name.replace("ndcg", "nDCG").replace("mrr", "MRR") for name in MEASURES}
"""What people call it."""
LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384)
"""Upper ends, in tokens, of the rows of the table by length; the last row is everything above."""
LENGTH_NAMES = ("512", "1k", "2k", "4k", "8k", "16k", "32k+")
_DRAWS = 2000
_SEED = 20260121

Scores = Mapping[str, Mapping[str, float]]
"""For each query, the score of each document found for it; higher is better."""
Values = Mapping[str, float]
"""One measure's value for each query."""
FloatArray = npt.NDArray[np.float64]


def measure(qrels: Mapping[str, Mapping[str, int]], run: Scores) -> dict[str, dict[str, float]]:
    """Each measure of each judged query; a query that the run has nothing for counts 0.

    Returns:
        For each name in :data:`MEASURES`, the value of each query of ``qrels``, 0 to 1.
    """
    ir_measures = require("ir_measures")
    parsed = {ir_measures.parse_measure(label): name for name, label in MEASURES.items()}
    values = {name: dict.fromkeys(qrels, 0.0) for name in MEASURES}
    judged = {query: dict(grades) for query, grades in qrels.items()}
    scored = {query: _ranked(found) for query, found in run.items() if query in qrels and found}
    for metric in ir_measures.iter_calc(list(parsed), judged, scored):
        values[parsed[metric.measure]][metric.query_id] = float(metric.value)
    return values


def _ranked(found: Mapping[str, float]) -> dict[str, float]:
    """Give scores in which no two are equal, equal ones by id: the measures break ties each in a way of their own."""
    order = sorted(found, key=lambda key: (-found[key], key))
    return {key: float(len(order) - place) for place, key in enumerate(order)}


def groups_of(qrels: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """For each query the document it asks for (the first of the best), by which queries are resampled together."""
    return {query: max(grades, key=lambda key: grades[key]) for query, grades in qrels.items()}


def mean(values: Values) -> float:
    """The average over the queries, 0 where there are none."""
    return float(np.mean(list(values.values()))) if values else 0.0


def interval(values: Values, groups: Mapping[str, str]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the average.

    Whole documents are drawn with the queries that ask for them: three queries for one document are not three
    independent observations.

    Args:
        values: one measure a query.
        groups: the document each query asks for.

    Returns:
        The 2.5 and 97.5 percentiles over 2,000 draws with a fixed seed.
    """
    sums, counts = _by_group(values, groups)
    if not len(sums):
        return 0.0, 0.0
    rng = np.random.default_rng(_SEED)
    drawn = rng.integers(len(sums), size=(_DRAWS, len(sums)))
    averages = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(averages, [2.5, 97.5])
    return float(low), float(high)


def paired(a: Values, b: Values, groups: Mapping[str, str]) -> tuple[float, float]:
    """Compare two systems on the same queries.

    Returns:
        The average of ``a`` minus that of ``b``, and its two-sided p value by a paired randomisation test over
        documents: how often a difference as large comes about when the systems' names are swapped at random.
    """
    differences = {query: value - b[query] for query, value in a.items()}
    sums, _ = _by_group(differences, groups)
    if not len(sums):
        return 0.0, 1.0
    rng = np.random.default_rng(_SEED)
    observed = abs(sums.sum())
    hits = 0
    for _ in range(_DRAWS // 100):
        signs = rng.integers(0, 2, size=(100, len(sums)), dtype=np.int8) * 2 - 1
        hits += int((np.abs(signs @ sums) >= observed - 1e-12).sum())
    return mean(differences), (hits + 1) / (_DRAWS + 1)


def by_length(values: Values, groups: Mapping[str, str], lengths: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Average of the queries by the length of the document they ask for.

    Args:
        values: one measure a query.
        groups: the document each query asks for.
        lengths: tokens of each document.

    Returns:
        For each row of :data:`LENGTH_NAMES` that has queries, ``mean``, ``ci95`` (see :func:`interval`), ``queries``.
    """
    rows: dict[str, dict[str, float]] = {name: {} for name in LENGTH_NAMES}
    for query, value in values.items():
        rows[length_name(lengths[groups[query]])][query] = value
    return {
        name: {"mean": mean(found), "ci95": list(interval(found, groups)), "queries": len(found)}
        for name, found in rows.items()
        if found
    }


def length_name(tokens: int) -> str:
    """The row of the table by length that a document of so many tokens belongs to."""
    return LENGTH_NAMES[int(np.searchsorted(LENGTHS, tokens))]


def by_kind(values: Values, kinds: Mapping[str, str]) -> dict[str, float]:
    """Average of the queries of each kind."""
    rows: dict[str, list[float]] = {}
    for query, value in values.items():
        if query in kinds:
            rows.setdefault(kinds[query], []).append(value)
    return {kind: float(np.mean(found)) for kind, found in rows.items()}


def _by_group(values: Values, groups: Mapping[str, str]) -> tuple[FloatArray, FloatArray]:
    """Sum and count of the values of each group."""
    sums: dict[str, list[float]] = {}
    for query, value in values.items():
        sums.setdefault(groups[query], []).append(value)
    rows: Sequence[list[float]] = list(sums.values())
    return np.array([sum(row) for row in rows]), np.array([float(len(row)) for row in rows])
