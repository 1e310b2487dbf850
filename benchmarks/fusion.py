"""Fusion on a development split: reciprocal rank, fixed weights, and weights that depend on the query.

    python benchmarks/fusion.py rfc --split dev [--model FOLDER] [--limit N]

Each query's lists are kept in the evaluation's cache folder, so that a run that was stopped goes on where it was, and a
second one only fits. The learned weights are cross-validated: a document's queries are all in one of five parts, and
each part is ranked by weights that were fitted on the other four. At the end the table `LEARNED` of
`lmk_rag/fusion.py` is printed, fitted on all of them.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from indexes.collection import Collection
from lmk_rag.evaluation import beir, metrics, searched
from lmk_rag.evaluation.cli import cache_folder
from lmk_rag.evaluation.kept import kept_rows
from lmk_rag.evaluation.systems import DEPTH, Options, load_encoder
from lmk_rag.fusion import FEATURES, WEIGHTS, fuse, reciprocal, standardise, without_words
from lmk_rag.search import Searcher

PARTS = 5
PENALTY = 10.0
"""What a weight's squared distance from the fixed ones costs, beside the likelihood of all queries."""
NAMES = tuple(WEIGHTS)
OTHERS = ((0.5, 0.5), (0.25, 0.5), (0.25, 0.4), (0.25, 0.25), (0.2, 0.3), (0.1, 0.3), (0.0, 0.4), (0.0, 0.3))
"""Weights of dense and evidence beside BM25's 1, to choose from."""
SHARES = (0.25, 0.5, 0.6, 0.7, 0.8)
"""Of evidence where there is no BM25."""

Array = npt.NDArray[np.float64]
Row = Mapping[str, Any]
"""One query: ``lists`` (scores by list and document) and ``features``."""


def gather(dataset: beir.Dataset, options: Options) -> dict[str, Row]:
    """Index the data set where that is not done yet, and ask for the lists of each query, once."""
    encoder = load_encoder(searched.POOLING, options)
    digest = searched.digest(dataset, encoder)
    with Collection.open(options.cache / f"collection-{digest}", create=True) as collection:
        keys, _ = searched.index(collection, dataset, [encoder], "fusion", _progress)
        searcher = Searcher(collection, options.device)
        asked = hashlib.sha256(json.dumps([sorted(dataset.queries.items()), FEATURES]).encode()).hexdigest()[:16]
        file = options.cache / f"fusion-{digest}-{asked}.jsonl"
        rows: dict[str, Row] = dict(kept_rows(file))
        with file.open("a", encoding="utf-8") as out:
            for query, text in dataset.queries.items():
                if query not in rows:
                    ranking = searcher.rank(text, DEPTH, pooling=searched.POOLING, fusion="learned")
                    lists = {
                        name: {keys[document]: round(score, 6) for document, score in scores.items()}
                        for name, scores in ranking.lists.items()
                    }
                    rows[query] = {"query": query, "lists": lists, "features": ranking.features}
                    out.write(json.dumps(rows[query]) + "\n")
                    out.flush()
                    _progress("queries", len(rows), len(dataset.queries))
    return rows


def _progress(what: str, done: int, everything: int) -> None:
    if done % 100 == 0 or done == everything:
        print(f"{what}: {done}/{everything}", file=sys.stderr, flush=True)


def designs(rows: Mapping[str, Row], qrels: Mapping[str, Mapping[str, int]]) -> dict[str, tuple[Array, Array]]:
    """Give the design (n, lists * (1 + features)) of each query whose answer is a candidate, and which ones answer."""
    made = {}
    for query, row in rows.items():
        candidates = sorted({document for scores in row["lists"].values() for document in scores})
        answers = np.array([qrels[query].get(document, 0) > 0 for document in candidates], dtype=float)
        if answers.any():
            columns = [standardise([row["lists"][name].get(each) for each in candidates]) for name in NAMES]
            scores = np.array(columns).T
            made[query] = (np.kron(scores, np.array([1.0, *row["features"]])), answers / answers.sum())
    return made


def fit(queries: Sequence[tuple[Array, Array]], features: bool = True) -> Array:
    """Find the weights under which the answers are likeliest, by Newton's method on the (concave) log-likelihood.

    Args:
        queries: what :func:`designs` makes.
        features: whether weights may depend on them.

    Returns:
        (lists, 1 + features): each list's weight, and what each feature adds to it.
    """
    fixed = np.zeros((len(NAMES), 1 + len(FEATURES)))
    fixed[:, 0] = [WEIGHTS[name] for name in NAMES]
    used = np.flatnonzero(np.ones(fixed.shape) if features else fixed)
    weights = fixed.ravel().copy()
    for _ in range(20):
        slope = -PENALTY * (weights - fixed.ravel())
        curve = PENALTY * np.eye(len(weights))
        for design, answers in queries:
            scores = design @ weights
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            mean = chances @ design
            slope += answers @ design - mean
            curve += (design * chances[:, None]).T @ design - np.outer(mean, mean)
        step = np.linalg.solve(curve[np.ix_(used, used)], slope[used])
        weights[used] += step
        if np.abs(step).max() < 1e-6:
            break
    return weights.reshape(fixed.shape)


def fused(row: Row, weights: Array) -> dict[str, float]:
    """Join a query's lists by the weights that its features give."""
    of_query = weights @ np.array([1.0, *row["features"]])
    return fuse(row["lists"], dict(zip(NAMES, of_query.tolist(), strict=True)))


def cross_validated(
    rows: Mapping[str, Row], made: Mapping[str, tuple[Array, Array]], groups: Mapping[str, str], features: bool
) -> dict[str, dict[str, float]]:
    """Rank each part of the documents' queries by weights that were fitted on the other parts."""
    part = {query: int(hashlib.sha256(groups[query].encode()).hexdigest(), 16) % PARTS for query in rows}
    run: dict[str, dict[str, float]] = {}
    for number in range(PARTS):
        weights = fit([each for query, each in made.items() if part[query] != number], features)
        run |= {query: fused(row, weights) for query, row in rows.items() if part[query] == number}
    return run


def table(dataset: beir.Dataset, runs: Mapping[str, metrics.Scores]) -> str:
    """Set the fusions side by side, as Markdown; the difference is that of nDCG@10 to the fixed weights."""
    groups = metrics.groups_of(dataset.qrels)
    measured = {name: metrics.measure(dataset.qrels, run) for name, run in runs.items()}
    kinds = sorted(set(dataset.kinds.values()))
    lines = [
        f"| fusion | nDCG@10 | 95 % | recall@100 | MRR@10 | {''.join(f'{kind} | ' for kind in kinds)}difference | p |",
        "|---|" + "---:|" * (6 + len(kinds)),
    ]
    for name, values in measured.items():
        low, high = metrics.interval(values["ndcg@10"], groups)
        of_kinds = metrics.by_kind(values["ndcg@10"], dataset.kinds)
        difference, p = metrics.paired(values["ndcg@10"], measured["weighted"]["ndcg@10"], groups)
        cells = [
            name,
            f"{metrics.mean(values['ndcg@10']):.4f}",
            f"{low:.3f} to {high:.3f}",
            f"{metrics.mean(values['recall@100']):.4f}",
            f"{metrics.mean(values['mrr@10']):.4f}",
            *(f"{of_kinds.get(kind, 0.0):.4f}" for kind in kinds),
            f"{difference:+.4f}",
            f"{p:.4f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", help="a BEIR folder, or a name such as rfc")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--full", action="store_true", help="all documents of the split")
    parser.add_argument("--model", help="by default the shipped adapters")
    parser.add_argument("--limit", type=int, help="a fixed draw of so many documents")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    arguments = parser.parse_args()
    dataset = beir.load(beir.find(arguments.dataset, arguments.split, full=arguments.full), arguments.split)
    dataset = dataset.limited(arguments.limit) if arguments.limit else dataset
    arguments.cache.mkdir(parents=True, exist_ok=True)
    rows = gather(dataset, Options(cache=arguments.cache, model=arguments.model, device=arguments.device))
    rows = {query: rows[query] for query in dataset.qrels}
    made = designs(rows, dataset.qrels)
    groups = metrics.groups_of(dataset.qrels)
    runs = {name: {query: row["lists"][name] for query, row in rows.items()} for name in NAMES}
    runs |= {
        "weighted": {query: fuse(row["lists"]) for query, row in rows.items()},
        **{
            f"dense and evidence {share}": {
                query: without_words(row["lists"]["dense"], row["lists"]["evidence"], share)
                for query, row in rows.items()
            }
            for share in SHARES
        },
        "reciprocal": {query: reciprocal(row["lists"]) for query, row in rows.items()},
        **{
            f"1, {dense}, {evidence}": {
                query: fuse(row["lists"], {"bm25": 1.0, "dense": dense, "evidence": evidence})
                for query, row in rows.items()
            }
            for dense, evidence in OTHERS
        },
        "fitted, one for all": cross_validated(rows, made, groups, features=False),
        "learned": cross_validated(rows, made, groups, features=True),
    }
    print(f"{dataset.name}: {len(dataset.corpus)} documents, {len(rows)} queries, {len(made)} with an answer found\n")
    print(table(dataset, runs))
    print("\nLEARNED = {")
    for name, numbers in zip(NAMES, fit(list(made.values())).tolist(), strict=True):
        print(f'    "{name}": ({", ".join(f"{number:.3f}" for number in numbers)}),')
    print("}")
    one = fit(list(made.values()), features=False)[:, 0]
    print("one for all:", dict(zip(NAMES, one.round(3).tolist(), strict=True)))


if __name__ == "__main__":
    main()
