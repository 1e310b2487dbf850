"""The fit of `benchmarks/fusion.py`: the plain objective is at its best there, and no document judges itself."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from lmk_rag.fusion import FEATURES, WEIGHTS

Queries = list[tuple[np.ndarray, np.ndarray]]


@pytest.fixture(scope="module")
def fusions(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("fusion_benchmark", repository / "benchmarks" / "fusion.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(queries: int) -> tuple[dict[str, dict[str, object]], dict[str, dict[str, int]]]:
    """Queries that BM25 answers where the first feature is high, and the documents' vectors where it is low."""
    chance = np.random.default_rng(8)
    made, qrels = {}, {}
    for number in range(queries):
        features = chance.random(len(FEATURES)).round(3)
        lists = {name: {f"d{n}": float(chance.normal()) for n in range(12)} for name in WEIGHTS}
        lists["bm25" if features[0] > 0.5 else "dense"]["d0"] = 3.0
        made[f"q{number}"] = {"lists": lists, "features": features.tolist()}
        qrels[f"q{number}"] = {"d0": 1}
    return made, qrels


def objective(weights: np.ndarray, queries: Queries, penalty: float) -> float:
    fixed = np.zeros(weights.shape)
    fixed[:, 0] = list(WEIGHTS.values())
    total = -penalty / 2 * float(((weights - fixed) ** 2).sum())
    for design, answers in queries:
        scores = design @ weights.ravel()
        total += float(answers @ scores) - float(np.log(np.exp(scores).sum()))
    return total


@pytest.mark.parametrize("features", [True, False])
def test_no_step_makes_the_answers_likelier(fusions: ModuleType, features: bool) -> None:
    queries = list(fusions.designs(*rows(60)).values())
    assert len(queries) == 60
    found = fusions.fit(queries, features)
    best = objective(found, queries, fusions.PENALTY)
    assert features or not found[:, 1:].any()
    for place in np.ndindex(found.shape):
        if features or place[1] == 0:
            for step in (-0.01, 0.01):
                other = found.copy()
                other[place] += step
                assert objective(other, queries, fusions.PENALTY) < best


def test_the_feature_that_decides_is_found(fusions: ModuleType) -> None:
    made, qrels = rows(300)
    found = fusions.fit(list(fusions.designs(made, qrels).values()))
    bm25, dense, _ = found
    assert bm25[1] > 1 > -1 > dense[1]
    low, high = ({"features": [value, 0.5, 0.5, 0.5, 0.5], "lists": made["q0"]["lists"]} for value in (0.0, 1.0))
    assert fusions.fused(low, found) != fusions.fused(high, found)


def test_each_query_is_ranked_by_weights_fitted_without_its_document(
    fusions: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, qrels = rows(40)
    designs = fusions.designs(made, qrels)
    groups = {query: f"document {int(query[1:]) // 2}" for query in made}
    by_identity = {id(design): query for query, (design, _) in designs.items()}
    fitted: list[set[str]] = []
    ranked: dict[str, set[str]] = {}

    def fit(queries: Queries, features: bool) -> set[str]:
        fitted.append({groups[by_identity[id(design)]] for design, _ in queries})
        return fitted[-1]

    def fused(row: dict[str, object], weights: set[str]) -> dict[str, float]:
        ranked[next(query for query, each in made.items() if each is row)] = weights
        return {}

    monkeypatch.setattr(fusions, "fit", fit)
    monkeypatch.setattr(fusions, "fused", fused)
    assert set(fusions.cross_validated(made, designs, groups, True)) == set(made)
    assert len(fitted) == fusions.PARTS
    assert all(groups[query] not in documents for query, documents in ranked.items())
