"""What the command line prints: tables, search results, progress, errors; all text of documents taken literally."""

import json
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from ingest.pipeline import Progress, Report
from lmk_rag.passages import Passage
from lmk_rag.results import FoldedHit, Hit, Results
from lmk_rag.wording import count

# Where the output is read by a program, no line is folded.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
err = Console(stderr=True, highlight=False)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MOST_LISTED = 20


def literal(text: str, style: str = "") -> Text:
    """Make text printable as it is: no markup is read, no control character reaches the terminal."""
    return Text(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), style=style)


def line(text: str, style: str = "") -> Text:
    """Make text printable on one line: a file's name may hold line ends."""
    return literal(text.replace("\n", "\\n").replace("\r", "\\r"), style)


def fail(message: str, code: int = 2) -> NoReturn:
    """Say what is wrong on standard error and end."""
    err.print(literal(message, "red"), soft_wrap=True)
    raise typer.Exit(code)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object to standard output; lone surrogates are escaped, so that it is valid UTF-8."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = json.dumps(value, indent=2)
    sys.stdout.write(text + "\n")


def size(count: float) -> str:
    """Write a number of bytes for people, in units of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> None:
    """Print rows under headings; the columns named in ``numbers`` are set to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column, justify="right" if column in numbers else "left", overflow="fold", no_wrap=column in numbers
        )
    for row in rows:
        table.add_row(*(line(str(cell)) for cell in row))
    out.print(table)


def print_notes(results: Results) -> None:
    """Print what the user should know about a search."""
    for note in results.notes:
        err.print(line(note, "yellow"), soft_wrap=True)


def print_results(results: Results) -> None:
    """Print the hits of a search, with their passages and the query's words in them marked."""
    if not results.hits:
        out.print("Nothing found.")
    for hit in results.hits:
        _print_hit(hit, results.score_kind)
    _print_copies("near copies of it", results.folded, "")


def print_passages(passages: Sequence[Passage]) -> None:
    """Print passages of one document."""
    if not passages:
        out.print("Nothing found.")
    for passage in passages:
        out.print(_passage(passage, pages=2))


def _print_hit(hit: Hit, score_kind: str) -> None:
    heading = Text(f"{hit.rank:>2}. ").append_text(line(hit.title or hit.path, "bold"))
    out.print(heading.append(f"   {score_kind} {hit.score:.3f}", style="dim"))
    out.print(Text("    ").append_text(line(hit.path, "cyan")), soft_wrap=True)
    for passage in hit.passages:
        out.print(Padding(_passage(passage, hit.pages), (0, 0, 0, 4), expand=False))
    _print_copies("also at", hit.folded, "    ")
    out.print()


def _passage(passage: Passage, pages: int) -> Text:
    """Write a passage on one line, the query's terms marked, with its page where there are several."""
    where = Text(f"p. {passage.page}  " if pages > 1 else "", style="green")
    borders = [0, *(border for mark in passage.marks for border in mark), len(passage.text)]
    for number, (start, end) in enumerate(pairwise(borders)):
        piece = re.sub(r"\s+", " ", passage.text[start:end])
        where.append_text(literal(piece, "bold yellow" if number % 2 else "default"))
    return where


def _print_copies(what: str, folded: Sequence[FoldedHit], indent: str) -> None:
    for copy in folded:
        told = Text(f"{indent}{what}: ", style="dim").append_text(line(copy.path, "cyan"))
        out.print(told, soft_wrap=True)


def print_info(about: Mapping[str, Any]) -> None:
    """Print what ``lmk-rag info`` knows."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in about["kinds"].items())
    sizes = about["sizes"]
    rows = [
        ("collection", about["path"]),
        ("created", about["created"]),
        ("generation", about["generation"]),
        ("documents", f"{about['documents']} ({kinds})" if kinds else 0),
        ("pages", f"{about['pages']:,}"),
        ("failed", about["failures"]),
        ("index", about["index"]),
        ("text", size(sizes["text"])),
        ("full text", size(sizes["fulltext"])),
        ("evidence", f"at most {about['evidence_ratio']:g} bytes a byte of text, in each pooling"),
        ("database", size(sizes["database"])),
    ]
    for encoder in about["encoders"]:
        stored = sizes["encoders"][encoder["pooling"]]
        evidence = size(stored["evidence"] + stored["scales"] + stored["spans"])
        missing = f", {count(encoder['missing'], 'document')} missing" if encoder["missing"] else ""
        rows.append(
            (
                encoder["pooling"],
                f"{encoder.get('model', 'a foreign model')}, {encoder['dimension']} dimensions, granularity "
                f"{encoder.get('granularity')}, window {encoder.get('window')}{missing}; vectors "
                f"{size(stored['vectors'])}, evidence {evidence}, together {stored['ratio']:.2f} of the text",
            )
        )
    for key, value in rows:
        out.print(Text(f"{key:>10}  ", style="bold").append_text(literal(str(value))), soft_wrap=True)


def print_report(report: Report, *, dry_run: bool) -> None:
    """Print what an ingest did."""
    for path, reason in report.failed[:_MOST_LISTED]:
        err.print(Text("failed   ", style="red").append_text(line(f"{path}: {reason}")), soft_wrap=True)
    if len(report.failed) > _MOST_LISTED:
        err.print(f"         … and {len(report.failed) - _MOST_LISTED} more; `lmk-rag list --failed` names them all")
    for path, text in report.warnings[:_MOST_LISTED]:
        err.print(Text("warning  ", style="yellow").append_text(line(f"{path}: {text}")), soft_wrap=True)
    if len(report.warnings) > _MOST_LISTED:
        err.print(f"         … and {len(report.warnings) - _MOST_LISTED} more warnings; `lmk-rag show ID` has them")
    counts = (
        f"{report.indexed} indexed, {report.updated} updated, {report.unchanged} unchanged, "
        f"{report.removed} removed, {len(report.failed)} failed"
    )
    if dry_run:
        out.print(f"Would be: {counts}.", soft_wrap=True)
        return
    speed = f", {report.tokens:,} tokens at {report.tokens / report.seconds:,.0f}/s" if report.tokens else ""
    counts = f"{counts}; {count(report.documents, 'document')} in the collection{speed}, {report.seconds:.1f} s."
    out.print(counts, soft_wrap=True)


def print_stopped(collection: Path) -> None:
    """Say, after an interruption, that nothing is lost and how to go on."""
    text = f"Stopped early; all that was done is in {collection}. Run the same command again to go on."
    err.print(line(text, "yellow"), soft_wrap=True)


class ProgressBar(Progress):
    """Shows an ingest on the terminal: documents, tokens a second, time left; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._bar = RichProgress(
            SpinnerColumn(),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[files]}/{task.fields[all]} documents"),
            _TokensColumn(),
            TimeRemainingColumn(),
            console=err,
            transient=True,
        )
        self._task = self._bar.add_task("ingest", total=None, visible=False, files=0, all=0, tokens=0, begun=None)
        self._files = 0
        self._tokens = 0
        self._told = 0

    def __enter__(self) -> "ProgressBar":
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        self._bar.stop()

    def start(self, files: int, size: int) -> None:
        """Show the bar for so many files."""
        self._bar.update(self._task, total=max(size, 1), all=files, visible=True)

    def message(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(literal(text), soft_wrap=True)

    def tokens(self, count: int) -> None:
        """Count positions that were embedded."""
        self._tokens += count
        begun = self._bar.tasks[0].fields["begun"] or time.monotonic()
        self._bar.update(self._task, tokens=self._tokens, begun=begun)

    def finished(self, files: int, size: int) -> None:
        """Move the bar on."""
        self._files += files
        self._bar.update(self._task, advance=size, files=self._files)
        if not err.is_terminal:
            self._print_line()

    def _print_line(self) -> None:
        """Print how far it is, once for each further tenth: a bar that moves is nothing for a file or a pipe."""
        task = self._bar.tasks[0]
        tenths = int(10 * task.completed / (task.total or 1))
        if tenths > self._told:
            self._told = tenths
            speed = _tokens_a_second(task)
            done = f"{min(10 * tenths, 100)} %: {self._files:,} of {task.fields['all']:,} documents"
            err.print(line(f"{done}, {speed}" if speed else done), soft_wrap=True)


class _TokensColumn(ProgressColumn):
    """Tokens a second since the first ones."""

    def render(self, task: Task) -> Text:
        return Text(_tokens_a_second(task))


def _tokens_a_second(task: Task) -> str:
    begun = task.fields["begun"]
    seconds = time.monotonic() - begun if begun else 0.0
    return f"{task.fields['tokens'] / seconds:,.0f} tokens/s" if seconds > 1 else ""
