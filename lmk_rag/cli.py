"""The command line: every command is a few lines that call the library and print what came of it."""

import io
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from indexes.collection import DATABASE_FILE, Collection
from indexes.errors import CollectionError, LockedError, SchemaError
from indexes.filters import Filter
from indexes.records import StoredDocument
from indexes.verify import Problem
from ingest.pipeline import Options, Report, ingest, plan
from ingest.walk import absolute, is_gone
from lmk_rag import __version__, console
from lmk_rag.encoding.base_model import ModelError, ModelWarning
from lmk_rag.encoding.checkpoints import POOLINGS
from lmk_rag.indexing import Indexer, Settings, load_as_recorded
from lmk_rag.search import MODES, Results, Searcher

app = typer.Typer(
    name="lmk-rag",
    help="Search long documents that are embedded whole, by landmark pooling.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_MOST = 2**31 - 1

CollectionOption = Annotated[
    Path,
    typer.Option(
        "--collection",
        metavar="DIR",
        envvar="LMK_RAG_COLLECTION",
        help="The collection's folder.",
        callback=lambda path: path.expanduser(),
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, nothing else.")]
DeviceOption = Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or mps.")]
ModelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="A model's name or folder [default: the collection's, else ours].")
]
GranularityOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Content tokens a landmark [default: the model's own].")
]
MaxTokensOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Content tokens read of each document [default: all].")
]
DEFAULT_COLLECTION = Path("lmk-collection")


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and end.")] = False,
) -> None:
    """Search long documents that are embedded whole, by landmark pooling."""
    if version:
        typer.echo(f"lmk-rag {__version__}")
        raise typer.Exit


@app.command(name="ingest")
def ingest_command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    collection: CollectionOption = DEFAULT_COLLECTION,
    pooling: Annotated[
        str | None,
        typer.Option(metavar="P,...", help="Of lmk, mean, cls, mcls, lasttoken, max [default: the model's]."),
    ] = None,
    model: ModelOption = None,
    granularity: GranularityOption = None,
    max_tokens: MaxTokensOption = None,
    device: DeviceOption = "auto",
    include: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only files that match.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Not what matches.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove documents whose file there is gone.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Parse unchanged failed files again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring a collection up to date with files and folders.

    Exit code: 0 when nothing failed, 1 when some files did, 2 for wrong usage.
    """
    options = Options(
        poolings=_poolings(pooling),
        settings=Settings(model, granularity, max_tokens, device),
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        prune=prune,
        retry_failed=retry_failed,
    )
    with _one_sentence():
        missing = [path for path in map(absolute, paths) if is_gone(path)]
        if len(missing) == len(paths):
            console.fail(f"There is no file or folder {', '.join(map(str, missing))}: name what to ingest.")
        if dry_run:
            report = plan(paths, collection, options)
        else:
            with console.ProgressBar() as bar, _finish_on_interrupt(bar) as stop:
                report = ingest(paths, collection, options, bar, stop)
    if as_json:
        console.print_json(_report(report))
    else:
        console.print_report(report, dry_run=dry_run)
    if report.stopped:
        console.print_stopped(collection)
    raise typer.Exit(1 if report.failed else 0)


def _report(report: Report) -> dict[str, Any]:
    keys = ("indexed", "updated", "unchanged", "removed")
    return {
        **{key: getattr(report, key) for key in keys},
        "failed": [{"path": path, "reason": reason} for path, reason in report.failed],
        "documents": report.documents,
        "tokens": report.tokens,
        "seconds": round(report.seconds, 3),
    }


@app.command(name="search")
def search_command(
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Any text; "double quotes" mean a phrase.')],
    collection: CollectionOption = DEFAULT_COLLECTION,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, max=_MOST, help="Hits, at most.")] = 10,
    mode: Annotated[str, typer.Option(metavar="M", help="hybrid, dense or bm25.")] = "hybrid",
    pooling: Annotated[
        str | None, typer.Option(metavar="P", help="Whose vectors [default: lmk if indexed, else the first].")
    ] = None,
    no_evidence: Annotated[bool, typer.Option("--no-evidence", help="Rank without the evidence vectors.")] = False,
    filter: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPRESSION", help="type=pdf, path~*/2024/*, pages>10, added>2026-01-01; repeatable."),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Find documents, and where in them the evidence stands."""
    if mode not in MODES:
        console.fail(f"Mode {mode!r} is not known: choose {', '.join(MODES)}.")
    if pooling is not None:
        _poolings(pooling)
    with _one_sentence():
        chosen = Filter.all([Filter.parse(each) for each in filter]) if filter else None
        searcher = Searcher.open(collection, device)
        results = searcher.search(query, k, mode, pooling, not no_evidence, chosen)
        searcher.close()
    console.print_notes(results)
    if as_json:
        console.print_json(_results(results))
    else:
        console.print_results(results)


def _results(results: Results) -> dict[str, Any]:
    keys = ("rank", "id", "path", "title", "score")
    hits = [
        {**{key: getattr(hit, key) for key in keys}, "passages": [asdict(passage) for passage in hit.passages]}
        for hit in results.hits
    ]
    return {"score_kind": results.score_kind, "hits": hits}


@app.command(name="list")
def list_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    failed: Annotated[bool, typer.Option("--failed", help="The files that could not be read, and why.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the documents of a collection."""
    with _opened(collection) as opened:
        documents = [] if failed else [_summary(document) for document in opened.documents()]
        failures = [{"path": each.path, "reason": each.reason} for each in opened.failures()]
    if as_json:
        console.print_json({"failed": failures} if failed else {"documents": documents, "failed": failures})
    elif failed:
        console.print_table(("reason", "path"), ((each["reason"], each["path"]) for each in failures))
    else:
        columns = ("id", "type", "pages", "title", "path")
        console.print_table(columns, ([each[key] for key in columns] for each in documents), numbers=("id", "pages"))


@app.command(name="show")
def show_command(
    document_id: Annotated[int, typer.Argument(metavar="ID", max=2**63 - 1, help="As `list` and `search` give it.")],
    collection: CollectionOption = DEFAULT_COLLECTION,
    page: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this page's text.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a document: what is known of it, and its text."""
    with _opened(collection) as opened:
        document = opened.get(document_id)
        if document is None:
            console.fail(f"There is no document {document_id} in {collection}: `lmk-rag list` gives the ids.")
        if page is not None and page > document.pages:
            console.fail(f"Document {document_id} has {document.pages} pages, not {page}.")
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


@app.command(name="remove")
def remove_command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders with all below.")],
    collection: CollectionOption = DEFAULT_COLLECTION,
    as_json: JsonOption = False,
) -> None:
    """Remove documents from a collection; the files themselves stay. Exit code 1 where a path is not in it."""
    wanted = list(map(absolute, paths))
    removed: list[str] = []
    with _opened(collection) as opened, opened.write("remove"):
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


@app.command(name="info")
def info_command(collection: CollectionOption = DEFAULT_COLLECTION, as_json: JsonOption = False) -> None:
    """Tell what is in a collection: counts, models, sizes, generation."""
    with _opened(collection) as opened:
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
            **stats,
            "encoders": encoders,
            "sizes": opened.sizes(),
        }
    if as_json:
        console.print_json(about)
    else:
        console.print_info(about)


@app.command(name="verify")
def verify_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a collection's caches against its truth. Exit code: 0 clean or repaired, 1 damaged."""
    try:
        with Collection.open(collection) as opened:
            problems = opened.verify(repair=repair)
    except (LockedError, SchemaError) as error:
        console.fail(str(error))
    except CollectionError as error:
        if not (collection / DATABASE_FILE).exists():
            console.fail(str(error))
        problems = [Problem(str(error), repairable=False)]  # too damaged to be opened
    left = [problem for problem in problems if not problem.repaired]
    if as_json:
        console.print_json({"clean": not left, "problems": [asdict(problem) for problem in problems]})
    else:
        for problem in problems:
            console.out.print(console.literal(f"{'repaired' if problem.repaired else 'damaged'}: {problem.what}"))
        hint = "" if repair or not left else " `lmk-rag verify --repair` mends what can be mended."
        console.out.print(f"{len(left)} problems left.{hint}" if left else "Clean." if not problems else "Repaired.")
    raise typer.Exit(1 if left else 0)


@app.command(name="reindex")
def reindex_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    pooling: Annotated[str | None, typer.Option(metavar="P,...", help="Only these [default: all of it].")] = None,
    model: ModelOption = None,
    granularity: GranularityOption = None,
    max_tokens: MaxTokensOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Embed all documents anew from their stored text, when a model or an adapter has changed.

    The old vectors serve searches until the new ones are complete.
    """
    settings = Settings(model, granularity, max_tokens, device)
    made: dict[str, int] = {}
    with _opened(collection) as opened, opened.write("reindex"):
        poolings = _poolings(pooling) or tuple(record.pooling for record in opened.encoders())
        with console.ProgressBar() as bar, _finish_on_interrupt(bar) as stop:
            indexer = Indexer(opened, [], bar.tokens, stop)
            for each in poolings:
                if stop.is_set():
                    break
                encoder = load_as_recorded(opened, each, settings)
                bar.start(opened.count(), 0)
                made[each] = indexer.replace(encoder)
        opened.persist_caches()
    if as_json:
        console.print_json({"embedded": made, "tokens": indexer.tokens, "stopped": stop.is_set()})
    else:
        counts = ", ".join(f"{count} documents by {name}" for name, count in made.items()) or "nothing"
        console.out.print(f"Embedded anew: {counts}.")
    if stop.is_set():
        console.print_stopped(collection)


@app.command(name="ui")
def ui_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="Port of the page.")] = 8501,
) -> None:
    """Open the Streamlit page over a collection, on this machine alone."""
    import ui

    script = Path(ui.__file__).parent / "app.py"
    environment = {**os.environ, "LMK_RAG_COLLECTION": str(absolute(collection))}
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    console.err.print(f"The page is at http://localhost:{port} (Ctrl-C ends it).")
    if os.name != "nt":
        os.execve(sys.executable, command, environment)  # so that whoever ends this process ends the page
    with _interrupts_ignored():
        raise typer.Exit(subprocess.call(command, env=environment))


@app.command(name="eval")
def eval_command(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A BEIR folder, or a name such as rfc or needle.")],
    split: Annotated[str, typer.Option(metavar="S", help="train, dev or test.")] = "test",
    full: Annotated[bool, typer.Option("--full", help="All documents of the split, not the fixed draw.")] = False,
    systems: Annotated[str, typer.Option(metavar="S,...", help="What to compare.")] = "bm25,base-mean,lmk",
    model: ModelOption = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="A fixed draw of so many documents.")] = None,
    max_tokens: MaxTokensOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Compare retrieval systems on a set of documents and queries."""
    from lmk_rag.evaluation import cli as evaluation
    from lmk_rag.evaluation.report import show

    with _one_sentence(ValueError):
        report = evaluation.eval_command(
            dataset,
            split=split,
            full=full,
            systems=[name.strip() for name in systems.split(",")],
            model=model,
            limit=limit,
            max_tokens=max_tokens,
            device=device,
        )
    if as_json:
        console.print_json(report)
    else:
        show(report, console.out)


@app.command(name="train")
def train_command(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The recipe, a TOML file.")],
) -> None:
    """Train adapters by a recipe; run again, it goes on where it stopped."""
    from lmk_rag.training import cli as training

    with _one_sentence(ValueError):
        finished = training.train_command(config)
    if not finished:
        console.err.print("Stopped early; run the same command again to go on.")


def _poolings(names: str | None) -> tuple[str, ...]:
    if names is None:
        return ()
    poolings = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in poolings:
        if name not in POOLINGS:
            console.fail(f"Pooling {name!r} is not known: choose {', '.join(POOLINGS)}.")
    return poolings


@contextmanager
def _one_sentence(*also: type[Exception]) -> Iterator[None]:
    """Turn the errors that a user can do something about into their sentence and exit code 2."""
    expected: tuple[type[Exception], ...] = (CollectionError, ModelError, OSError, *also)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # said as a notice, without a line of source code
        try:
            yield
        except expected as error:
            console.fail(str(error))


@contextmanager
def _opened(collection: Path) -> Iterator[Collection]:
    with _one_sentence(), Collection.open(collection) as opened:
        yield opened


@contextmanager
def _finish_on_interrupt(bar: console.ProgressBar) -> Iterator[threading.Event]:
    """Let the first Ctrl-C ask for an end after the batch under way; a second one ends at once."""
    stop = threading.Event()

    def ask(_number: int, _frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)
        bar.message("Stopping: the batch under way is finished and kept (Ctrl-C again ends at once).")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Leave Ctrl-C to the child process, which gets it too (Windows has no exec)."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal's encoding may lack a document's characters
    app()


if __name__ == "__main__":
    main()
