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
        interval), ``by_length`` and ``by_kind`` (nDCG@10), ``seconds`` and ``tokens``; and ``paired``, for each
        two systems the ``difference`` of nDCG@10 (``a`` minus ``b``) and its ``p``.
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
    pairs = []
    for a, b in combinations(systems, 2):
        difference, p = metrics.paired(values[a], values[b], groups)
        pairs.append({"a": a, "b": b, "difference": difference, "p": p})
    return {"dataset": name, "results": results, "paired": pairs}


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print a comparison as tables: averages, by length, by kind, differences."""
    from rich.table import Table

    averages = Table(title=f"{report['dataset']}: averages, 95 % interval of nDCG@10")
    for column in ("system", *metrics.MEASURES, "interval", "seconds", "tokens"):
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
    _by_group(report, "by_length", [*metrics.LENGTH_NAMES], "nDCG@10 by the document's tokens, up to", console)
    _by_group(report, "by_kind", None, "nDCG@10 by kind of query", console)
    if report["paired"]:
        differences = Table("a", "b", "difference", "p", title="nDCG@10 of a minus b, paired test over documents")
        for pair in report["paired"]:
            differences.add_row(pair["a"], pair["b"], f"{pair['difference']:+.3f}", f"{pair['p']:.4f}")
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
