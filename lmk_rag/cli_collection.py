"""The commands that look after a collection: list, show, remove, info, verify, reindex."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from indexes.collection import DATABASE_FILE, Collection
from indexes.errors import CollectionError, LockedError, MissingLibraryError, SchemaError
from indexes.faiss_index import load_faiss
from indexes.records import StoredDocument
from indexes.verify import Problem
from ingest.walk import absolute
from lmk_rag import console
from lmk_rag.cli_common import (
    DEFAULT_COLLECTION,
    CollectionOption,
    DeviceOption,
    GranularityOption,
    JsonOption,
    MaxTokensOption,
    ModelOption,
    finish_on_interrupt,
    open_collection,
    poolings_of,
)
from lmk_rag.evidence import EVIDENCE_RATIO
from lmk_rag.indexing import Settings
from lmk_rag.upkeep import embed_anew
from lmk_rag.wording import count


def list_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    failed: Annotated[bool, typer.Option("--failed", help="The files that could not be read, and why.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the documents of a collection."""
    with open_collection(collection) as opened:
        documents = [] if failed else [_summary(document) for document in opened.documents()]
        failures = [{"path": each.path, "reason": each.reason} for each in opened.failures()]
    if as_json:
        console.print_json({"failed": failures} if failed else {"documents": documents, "failed": failures})
    elif failed:
        console.print_table(("reason", "path"), ((each["reason"], each["path"]) for each in failures))
    else:
        columns = ("id", "type", "pages", "title", "path")
        console.print_table(columns, ([each[key] for key in columns] for each in documents), numbers=("id", "pages"))


def show_command(
    document_id: Annotated[int, typer.Argument(metavar="ID", max=2**63 - 1, help="As `list` and `search` give it.")],
    collection: CollectionOption = DEFAULT_COLLECTION,
    page: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this page's text.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a document: what is known of it, and its text."""
    with open_collection(collection) as opened:
        document = opened.get(document_id)
        if document is None:
            console.fail(f"There is no document {document_id} in {collection}: `lmk-rag list` gives the ids.")
        if page is not None and page > document.pages:
            console.fail(f"Document {document_id} has {count(document.pages, 'page')}, not {page}.")
        texts = opened.page_texts(document_id)
        embeddings = {
            record.pooling: embedding
            for record in opened.encoders()
            if (embedding := opened.embedding(record.id, document_id))
        }
    pages = [{"page": number, "text": text} for number, text in enumerate(texts, start=1) if page in (None, number)]
    about = {
        **_summary(document),
        "tokens": {pooling: embedding.tokens for pooling, embedding in embeddings.items()},
        "truncated": {pooling: embedding.truncated for pooling, embedding in embeddings.items()},
        "language": document.language,
        "warnings": list(document.warnings),
        "metadata": document.metadata,
    }
    if as_json:
        console.print_json({**about, "pages_text": pages})
        return
    for key, value in about.items():
        console.out.print(console.literal(f"{key:>10}  {value}"), soft_wrap=True)
    for each in pages:
        console.out.print(f"\n--- page {each['page']} ---", style="bold")
        console.out.print(console.literal(str(each["text"])), soft_wrap=True)


def _summary(document: StoredDocument) -> dict[str, Any]:
    return {
        "id": document.id,
        "path": document.path,
        "title": document.title,
        "type": document.kind,
        "pages": document.pages,
        "characters": document.characters,
        "added": document.added,
        "updated": document.updated,
    }


def remove_command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders with all below.")],
    collection: CollectionOption = DEFAULT_COLLECTION,
    as_json: JsonOption = False,
) -> None:
    """Remove documents from a collection; the files themselves stay. Exit code 1 where a path is not in it."""
    wanted = list(map(absolute, paths))
    removed: list[str] = []
    with open_collection(collection) as opened, opened.write("remove"):
        found = [
            document
            for document in opened.documents()
            if document.source == "file" and any(Path(document.path).is_relative_to(path) for path in wanted)
        ]
        failures = [each.path for each in opened.failures() if any(Path(each.path).is_relative_to(p) for p in wanted)]
        if found or failures:
            with opened.transaction() as transaction:
                for document in found:
                    transaction.remove(document.id)
                for failure in failures:
                    transaction.forget_failure(failure)
            opened.persist_caches()
        removed = sorted({*(document.path for document in found), *failures})
    unknown = [str(path) for path in wanted if not any(Path(each).is_relative_to(path) for each in removed)]
    if as_json:
        console.print_json({"removed": removed, "unknown": unknown})
    else:
        console.out.print(f"{len(removed)} removed.")
        for path in unknown:
            console.err.print(console.literal(f"{path} is not in {collection}.", "red"))
    raise typer.Exit(1 if unknown else 0)


def info_command(collection: CollectionOption = DEFAULT_COLLECTION, as_json: JsonOption = False) -> None:
    """Tell what is in a collection: counts, models, sizes, generation."""
    with open_collection(collection) as opened:
        stats = opened.stats()
        counts = stats.pop("encoders")
        encoders = [
            {
                **record.fingerprint,
                **counts[record.id],
                "dimension": record.dimension,
                "missing": len(opened.missing(record.id)),
            }
            for record in opened.encoders()
        ]
        about = {
            "path": str(absolute(collection)),
            "created": opened.created,
            "index": opened.index_factory,
            "evidence_ratio": opened.evidence_ratio or EVIDENCE_RATIO,
            **stats,
            "encoders": encoders,
            "sizes": opened.sizes(),
        }
    if as_json:
        console.print_json(about)
    else:
        console.print_info(about)


def verify_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a collection's caches against its truth. Exit code: 0 clean or repaired, 1 damaged."""
    try:
        with Collection.open(collection) as opened:
            load_faiss()  # without it no index file can be judged
            problems = opened.verify(repair=repair)
            lacking = {record.pooling: len(opened.missing(record.id)) for record in opened.encoders()}
    except (LockedError, SchemaError, MissingLibraryError) as error:
        console.fail(str(error))
    except CollectionError as error:
        if not (collection / DATABASE_FILE).exists():
            console.fail(str(error))
        problems, lacking = [Problem(str(error), repairable=False)], {}  # too damaged to be opened
    for pooling, missing in lacking.items():
        if missing:
            told = f"No {pooling} vector for {count(missing, 'document')}: `lmk-rag reindex` makes what is missing."
            console.err.print(told, soft_wrap=True)
    left = [problem for problem in problems if not problem.repaired]
    if as_json:
        console.print_json({"clean": not left, "problems": [asdict(problem) for problem in problems]})
    else:
        for problem in problems:
            console.out.print(console.literal(f"{'repaired' if problem.repaired else 'damaged'}: {problem.what}"))
        mendable = any(problem.repairable for problem in left) and not repair
        hint = " `lmk-rag verify --repair` mends what can be mended." if mendable else ""
        console.out.print(
            f"{count(len(left), 'problem')} left.{hint}" if left else "Clean." if not problems else "Repaired."
        )
    raise typer.Exit(1 if left else 0)


def reindex_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    pooling: Annotated[str | None, typer.Option(metavar="P,...", help="Only these [default: all of it].")] = None,
    model: ModelOption = None,
    granularity: GranularityOption = None,
    max_tokens: MaxTokensOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Embed documents anew from their stored text where a model or an adapter has changed; make what is missing.

    The old vectors serve searches until the new ones are complete.
    """
    settings = Settings(model, granularity, max_tokens, device)
    with open_collection(collection) as opened, console.ProgressBar() as bar, finish_on_interrupt(bar) as stop:
        anew = embed_anew(opened, settings, poolings_of(pooling), bar, stop)
    if as_json:
        console.print_json({"embedded": dict(anew.embedded), "tokens": anew.tokens, "stopped": stop.is_set()})
    else:
        counts = ", ".join(f"{count(done, 'document')} by {name}" for name, done in anew.embedded.items()) or "nothing"
        console.out.print(f"Embedded anew: {counts}.")
    if stop.is_set():
        console.print_stopped(collection)
