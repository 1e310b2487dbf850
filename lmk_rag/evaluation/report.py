"""One comparison: systems run on a data set, measured, set side by side, as a dictionary and as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from lmk_rag.evaluation import metrics
from lmk_rag.evaluation.beir import Dataset

if TYPE_CHECKING:
    from rich.console import Console

    from lmk_rag.evaluation.systems import Run

PAIRED = "ndcg@10"
"""The measure of the paired test and of the tables by length and kind."""
LONG = 4096
"""Tokens over which a document counts as long in the paired tests within parts of the queries."""


def compare(
    name: str,
    parts: Sequence[Dataset],
    systems: Sequence[str],
    run: Callable[[str, Dataset], Run],
    lengths: Mapping[str, int],
) -> dict[str, Any]:
    """Run systems on a data set and compare them.

    Args:
        name: of the data set.
        parts: usually one; documents compete within their part, queries of all parts are averaged together, and
            ids are unique over all of them.
        systems: names.
        run: gives what a system found in a part.
        lengths: tokens of each document.

    Returns:
        ``dataset``; ``results``, for each system its averages, ``ci95`` (for each measure the 95 % bootstrap
        interval), ``by_length`` and ``by_kind`` (nDCG@10), ``seconds`` and ``tokens``; ``paired``, for each
        two systems the ``difference`` of nDCG@10 (``a`` minus ``b``) and its ``p``; and ``paired_within``, the same
        ``within`` the queries of one kind, those for documents of over 4,096 tokens, and those of one kind for such
        documents.
    """
    qrels = {query: grades for part in parts for query, grades in part.qrels.items()}
    kinds = {query: kind for part in parts for query, kind in part.kinds.items()}
    groups = metrics.groups_of(qrels)
    results = []
    values: dict[str, metrics.Values] = {}
    for system in systems:
        found = [run(system, part) for part in parts]
        measured = metrics.measure(qrels, {query: scores for each in found for query, scores in each.scores.items()})
        values[system] = measured[PAIRED]
        results.append(
            {"system": system}
            | {measure: metrics.mean(of_queries) for measure, of_queries in measured.items()}
            | {
                "ci95": {measure: list(metrics.interval(of, groups)) for measure, of in measured.items()},
                "by_length": metrics.by_length(measured[PAIRED], groups, lengths),
                "by_kind": metrics.by_kind(measured[PAIRED], kinds),
                "seconds": round(sum(each.seconds for each in found), 3),
                "tokens": sum(each.tokens for each in found),
            }
        )
    within = _parts_of_queries(kinds, {query for query, key in groups.items() if lengths[key] > LONG}, len(qrels))
    return {
        "dataset": name,
        "results": results,
        "paired": [_pair(values, a, b, groups) for a, b in combinations(systems, 2)],
        "paired_within": [
            {"within": part, "queries": len(queries), **_pair(values, a, b, groups, queries)}
            for part, queries in within.items()
            for a, b in combinations(systems, 2)
        ],
    }


def _parts_of_queries(kinds: Mapping[str, str], long: set[str], everything: int) -> dict[str, set[str]]:
    """The kinds, the queries for long documents, and the kinds among these; none that is empty or holds all."""
    parts = {kind: {query for query in kinds if kinds[query] == kind} for kind in sorted(set(kinds.values()))}
    parts |= {"over 4k": long} | {f"over 4k, {kind}": queries & long for kind, queries in parts.items()}
    return {part: queries for part, queries in parts.items() if 0 < len(queries) < everything}


def _pair(
    values: Mapping[str, metrics.Values], a: str, b: str, groups: Mapping[str, str], queries: set[str] | None = None
) -> dict[str, Any]:
    one, other = ({q: v for q, v in values[name].items() if queries is None or q in queries} for name in (a, b))
    difference, p = metrics.paired(one, other, groups)
    return {"a": a, "b": b, "difference": difference, "p": p}


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print a comparison as tables: averages, by length, by kind, differences."""
    from rich.table import Table

    averages = Table(title=f"{report['dataset']}: averages, 95 % interval of nDCG@10")
    for column in ("system", *metrics.TITLES.values(), "interval", "seconds", "tokens"):
        averages.add_column(column, justify="left" if column == "system" else "right")
    for row in report["results"]:
        low, high = row["ci95"][PAIRED]
        averages.add_row(
            row["system"],
            *(f"{row[name]:.3f}" for name in metrics.MEASURES),
            f"{low:.3f} to {high:.3f}",
            f"{row['seconds']:.1f}",
            f"{row['tokens']:,}",
        )
    console.print(averages)
    _by_group(
        report,
        "by_length",
        [*metrics.LENGTH_NAMES],
        "nDCG@10 by the document's tokens, up to (32k+: over 16k)",
        console,
    )
    _by_group(report, "by_kind", None, "nDCG@10 by kind of query", console)
    everywhere = [{"within": "all", **pair} for pair in report["paired"]]
    if everywhere:
        title = "nDCG@10 of a minus b, paired test over documents"
        differences = Table("within", "a", "b", "difference", "p", title=title)
        for pair in [*everywhere, *report["paired_within"]]:
            figures = f"{pair['difference']:+.3f}", f"{pair['p']:.4f}"
            differences.add_row(pair["within"], pair["a"], pair["b"], *figures)
        console.print(differences)


def _by_group(report: Mapping[str, Any], key: str, names: list[str] | None, title: str, console: Console) -> None:
    from rich.table import Table

    present = {name for row in report["results"] for name in row[key]}
    columns = [name for name in names if name in present] if names else sorted(present)
    if not columns:
        return
    table = Table(title=title)
    for column in ("system", *columns):
        table.add_column(column, justify="left" if column == "system" else "right")
    for row in report["results"]:
        cells = []
        for name in columns:
            found = row[key].get(name)
            cells.append("" if found is None else f"{found['mean'] if isinstance(found, dict) else found:.3f}")
        table.add_row(row["system"], *cells)
    if key == "by_length" and report["results"]:
        counts = report["results"][0][key]
        table.add_row("queries", *(str(counts[name]["queries"]) if name in counts else "" for name in columns))
    console.print(table)
