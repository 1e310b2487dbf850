"""The commands that look for something: search, in all documents or in one, and similar."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from indexes.filters import Filter
from lmk_rag import console
from lmk_rag.cli_common import (
    DEFAULT_COLLECTION,
    CollectionOption,
    DeviceOption,
    JsonOption,
    one_sentence,
    poolings_of,
)
from lmk_rag.passages import Passage
from lmk_rag.search import FUSIONS, MODES, Results, Searcher

CountOption = Annotated[int, typer.Option("-k", metavar="N", min=1, max=2**31 - 1, help="Hits, at most.")]
PoolingOption = Annotated[
    str | None, typer.Option(metavar="P", help="Whose vectors [default: lmk if indexed, else the first].")
]
FilterOption = Annotated[
    list[str] | None,
    typer.Option(metavar="EXPRESSION", help="type=pdf, path~*/2024/*, pages>10, added>2026-01-01; repeatable."),
]

_NOT_WITHIN = {"mode": "--mode", "no_evidence": "--no-evidence", "fusion": "--fusion", "filter": "--filter"}


def search_command(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Any text; "double quotes" mean a phrase.')],
    collection: CollectionOption = DEFAULT_COLLECTION,
    k: CountOption = 10,
    mode: Annotated[str, typer.Option(metavar="M", help="hybrid, dense or bm25.")] = "hybrid",
    pooling: PoolingOption = None,
    no_evidence: Annotated[bool, typer.Option("--no-evidence", help="Rank without the evidence vectors.")] = False,
    fusion: Annotated[
        str, typer.Option(metavar="F", help="How hybrid joins its lists: weighted, learned or reciprocal.")
    ] = "weighted",
    filter: FilterOption = None,
    within: Annotated[
        int | None,
        typer.Option("--in", metavar="ID", max=2**63 - 1, help="Find N passages in this document alone, see above."),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Find documents, and where in them the evidence stands.

    With --in, one document is looked through; --mode, --no-evidence, --fusion and --filter have no part in that and
    are refused. --json then prints {"passages": [{"page", "start", "end", "text", "score"}, ...]}, best first.
    """
    if within is not None:
        _refuse_beside_within(context)
    for name, value, known in (("Mode", mode, MODES), ("Fusion", fusion, FUSIONS)):
        if value not in known:
            console.fail(f"{name} {value!r} is not known: choose {', '.join(known)}.")
    if pooling is not None:
        poolings_of(pooling)
    with one_sentence():
        searcher = Searcher.open(collection, device)
        if within is not None:
            passages = searcher.find(within, query, k, pooling)
        else:
            results = searcher.search(query, k, mode, pooling, not no_evidence, _filter(filter), fusion)
        searcher.close()
    if within is None:
        _print(results, as_json)
    elif as_json:
        console.print_json({"passages": _passages(passages)})
    else:
        console.print_passages(passages)


def similar_command(
    document_id: Annotated[int, typer.Argument(metavar="ID", max=2**63 - 1, help="As `list` and `search` give it.")],
    collection: CollectionOption = DEFAULT_COLLECTION,
    k: CountOption = 10,
    pooling: PoolingOption = None,
    filter: FilterOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Find the documents that are most like one."""
    if pooling is not None:
        poolings_of(pooling)
    with one_sentence():
        searcher = Searcher.open(collection, device)
        results = searcher.more_like(document_id, k, pooling, _filter(filter))
        searcher.close()
    _print(results, as_json)


def _refuse_beside_within(context: typer.Context) -> None:
    """End with exit code 2 where an option was given that one document has no use for."""
    sources = {option: context.get_parameter_source(name) for name, option in _NOT_WITHIN.items()}
    given = [option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        console.fail(
            f"--in looks through one document alone, where none is chosen or ranked: leave out {', '.join(given)}."
        )


def _filter(expressions: Sequence[str] | None) -> Filter | None:
    return Filter.all(expressions) if expressions else None


def _print(results: Results, as_json: bool) -> None:
    console.print_notes(results)
    if as_json:
        console.print_json(results_json(results))
    else:
        console.print_results(results)


def results_json(results: Results) -> dict[str, Any]:
    """Turn results into the JSON object that is documented; ``folded`` stands only where near copies were found."""
    keys = ("rank", "id", "path", "title", "score")
    hits = [
        {key: getattr(hit, key) for key in keys} | {"passages": _passages(hit.passages)} | _copies(hit.folded)
        for hit in results.hits
    ]
    return {"score_kind": results.score_kind, "hits": hits} | _copies(results.folded)


def _passages(passages: Sequence[Passage]) -> list[dict[str, Any]]:
    keys = ("page", "start", "end", "text", "score")
    return [{key: getattr(passage, key) for key in keys} for passage in passages]


def _copies(folded: Sequence[Any]) -> dict[str, Any]:
    return {"folded": [asdict(each) for each in folded]} if folded else {}
