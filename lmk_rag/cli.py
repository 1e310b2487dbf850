"""The command line: every command is a few lines that call the library and print what came of it."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ingest.pipeline import Options, Report, ingest, plan
from ingest.walk import absolute, is_gone
from lmk_rag import __version__, cli_answers, cli_collection, cli_search, console
from lmk_rag.cli_common import (
    DEFAULT_COLLECTION,
    CollectionOption,
    DeviceOption,
    GranularityOption,
    JsonOption,
    MaxTokensOption,
    ModelOption,
    finish_on_interrupt,
    one_sentence,
    poolings_of,
)
from lmk_rag.indexing import Settings

app = typer.Typer(
    name="lmk-rag",
    help="Search long documents that are embedded whole, by landmark pooling.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    evidence_ratio: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Bytes of evidence a byte of text, at most, in a new collection [default: 1.6]."
        ),
    ] = None,
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
        poolings=poolings_of(pooling),
        settings=Settings(model, granularity, max_tokens, device),
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        prune=prune,
        retry_failed=retry_failed,
        evidence_ratio=evidence_ratio,
    )
    with one_sentence():
        missing = [path for path in map(absolute, paths) if is_gone(path)]
        if len(missing) == len(paths) and not prune:
            console.fail(f"There is no file or folder {', '.join(map(str, missing))}: name what to ingest.")
        if dry_run:
            report = plan(paths, collection, options)
        else:
            with console.ProgressBar() as bar, finish_on_interrupt(bar) as stop:
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


app.command(name="search")(cli_search.search_command)
app.command(name="similar")(cli_search.similar_command)
app.command(name="ask")(cli_answers.ask_command)
app.command(name="serve")(cli_answers.serve_command)
app.command(name="mcp")(cli_answers.mcp_command)
app.command(name="list")(cli_collection.list_command)
app.command(name="show")(cli_collection.show_command)
app.command(name="remove")(cli_collection.remove_command)
app.command(name="info")(cli_collection.info_command)
app.command(name="verify")(cli_collection.verify_command)
app.command(name="reindex")(cli_collection.reindex_command)


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


_SYSTEMS = (
    "What to compare: bm25, base-mean, mean, cls, mcls, lmk, lmk-maxsim, chunks, chunks-256, lmk+evidence, hybrid, "
    "hybrid+evidence."
)


@app.command(name="eval")
def eval_command(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A BEIR folder, or a name such as rfc or needle.")],
    split: Annotated[str, typer.Option(metavar="S", help="train, dev or test.")] = "test",
    full: Annotated[bool, typer.Option("--full", help="All documents of the split, not the fixed draw.")] = False,
    systems: Annotated[str, typer.Option(metavar="S,...", help=_SYSTEMS)] = "bm25,base-mean,lmk",
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="A model, or a folder with one a pooling [default: ours].")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="A fixed draw of so many documents.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Content tokens read of each text, 0 for all [default].")
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Compare retrieval systems on a set of documents and queries."""
    from lmk_rag.evaluation import cli as evaluation
    from lmk_rag.evaluation.report import show

    with one_sentence(ValueError):
        report = evaluation.eval_command(
            dataset,
            split=split,
            full=full,
            systems=[name.strip() for name in systems.split(",")],
            model=model,
            limit=limit,
            max_tokens=max_tokens or None,
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

    with one_sentence(ValueError):
        finished = training.train_command(config)
    if not finished:
        console.err.print("Stopped early; run the same command again to go on.")


@app.command(name="export")
def export_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="default, or a model's folder or name.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write; missing or empty.")],
    pooling: Annotated[str | None, typer.Option(metavar="P", help="How it pools [default: the model's own].")] = None,
) -> None:
    """Write a model, its adapter merged in, as a folder that sentence-transformers loads."""
    with one_sentence():
        from lmk_rag.export import export

        encoder = export(model, folder, pooling)
    for notice in encoder.notices:
        console.err.print(console.line(notice, "yellow"), soft_wrap=True)
    told = f"{encoder.pooling} pooling, granularity {encoder.granularity}, window {encoder.window}"
    console.out.print(console.line(f"Written to {folder}: {told}."), soft_wrap=True)
    # The flag lets sentence-transformers import the class of this installed package; no code lies in the folder.
    console.out.print(
        console.line(f"Load it with SentenceTransformer({str(folder)!r}, trust_remote_code=True)."), soft_wrap=True
    )


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
