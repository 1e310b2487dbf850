"""The steps of reading one file, put together again: from messages of `ingest.worker.steps` to a `Parsed`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.cleaning import Counts, has_text, total
from ingest.language import UNKNOWN, Language, detect
from ingest.readers import NO_TEXT, NO_TEXT_SCANNED, ParsedFile, stem_of
from ingest.readers.titles import title_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What came of one file.

    Attributes:
        path: As it was given.
        size: Bytes; None where the file could not be reached.
        mtime_ns: Time of change, taken before the file was read.
        sha256: Of the file's bytes, in hexadecimal; None where they could not be read.
        file: The text, or None where the file failed.
        language: A guess from the text.
        reason: Why the file failed, or None.
    """

    path: Path
    size: int | None = None
    mtime_ns: int | None = None
    sha256: str | None = None
    file: ParsedFile | None = None
    language: Language = UNKNOWN
    reason: str | None = None


class Assembly:
    """Takes the steps of one file as they come, from one worker or from several after each other."""

    def __init__(self, path: Path) -> None:
        """Begin with nothing but the path."""
        self.path = path
        self.page_count: int | None = None
        self.next_page = 0
        self.failure: str | None = None
        self._about: dict[str, Any] = {}
        self._pages: list[str] = []
        self._counts: list[Counts] = []
        self._lost: list[tuple[int, str]] = []

    @property
    def losses(self) -> int:
        """How many pages were left out so far."""
        return len(self._lost)

    def add(self, step: dict[str, Any]) -> None:
        """Take a step; those before the pages may come again when a file is opened again."""
        if "page" in step:
            if "lost" in step:
                self.lose(step["lost"])
            else:
                self._counts.append(Counts(*step["counts"]))
                self._keep(step["text"])
        elif "failed" in step:
            self.failure = step["failed"]
        else:
            self._about |= step
            self.page_count = self._about.get("page_count")

    def lose(self, reason: str) -> None:
        """Leave the next page out."""
        self._lost.append((self.next_page, reason))
        self._keep("")

    def lose_rest(self, reason: str) -> None:
        """Leave out all pages that have not come."""
        while self.next_page < (self.page_count or 0):
            self.lose(reason)

    def _keep(self, text: str) -> None:
        self._pages.append(text)
        self.next_page += 1

    def finish(self) -> Parsed:
        """Give what came of the file."""
        about = self._about
        reason = self.failure or self._without_text()
        file = None if reason else self._file()
        return Parsed(
            path=self.path,
            size=about.get("size"),
            mtime_ns=about.get("mtime_ns"),
            sha256=about.get("sha256"),
            file=file,
            language=detect(file.pages) if file else UNKNOWN,
            reason=reason,
        )

    def _file(self) -> ParsedFile:
        title = self._about["title"] or title_line(self._pages) or stem_of(self.path)
        return ParsedFile(
            kind=self._about["kind"],
            title=title,
            pages=tuple(self._pages),
            metadata=self._about["metadata"],
            warnings=tuple(self._warnings()),
        )

    def _without_text(self) -> str | None:
        if any(map(has_text, self._pages)):
            return None
        if self._lost:
            return f"no page could be read: {self._lost[0][1]}"
        return NO_TEXT_SCANNED if self._about.get("kind") == "pdf" else NO_TEXT

    def _warnings(self) -> list[str]:
        empty = [number for number, page in enumerate(self._pages, 1) if not has_text(page)]
        scanned = len(empty) - len(self._lost)
        found = [*self._about["warnings"], *total(self._counts).warnings(), *self._lost_pages()]
        if self._about["kind"] == "pdf" and 2 * scanned > len(self._pages):
            found.append(f"{scanned} of {len(self._pages)} pages have no text (scanned?)")
        return found

    def _lost_pages(self) -> list[str]:
        """Name each page that was left out; runs of pages lost for one reason are told together."""
        runs: list[tuple[int, int, str]] = []
        for index, reason in self._lost:
            if runs and runs[-1][1] == index and runs[-1][2] == reason:
                runs[-1] = (runs[-1][0], index + 1, reason)
            else:
                runs.append((index, index + 1, reason))
        return [
            f"page {first + 1} was left out: {reason}"
            if last == first + 1
            else f"pages {first + 1} to {last} were left out: {reason}"
            for first, last, reason in runs
        ]
