"""RFCs as Debian packages them (``rfcN.txt.gz`` beside ``rfcN.json``): title, abstract, sections, relations.

The body starts at the first section, so the title block, the abstract, the status notes and the table of
contents, which repeat what a query asks for, are not in it; nor are the running headers and footers.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FOOTER = re.compile(r"\[Page\s+\S+\]\s*$")
_HEADER = re.compile(r"^(RFC|INTERNET-DRAFT|Internet Draft)\s*#?\s*\d+.*\d{4}\s*$", re.IGNORECASE)
_NUMBERED = re.compile(
    r"^\s{0,2}(?:(?:\d{1,2}|[A-Z])(?:\.\d{1,2})+\.?|\d{1,2}\.?|[A-Z]\.)\s{1,4}(?P<title>[A-Z\"'`(].{2,100}?)\s*$"
)
_APPENDIX = re.compile(r"^(?:Appendix|APPENDIX)\s+[A-Z0-9]+[.:]?\s+(?:-+\s+)?(?P<title>\S.{2,100}?)\s*$")
_CONTENTS_LINE = re.compile(r"(\.\s?){3,}|\s{3,}\d+\s*$|\s\d+\s*$")
_RELATIONS = ("obsoletes", "obsoleted_by", "updates", "updated_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section: its heading without the number (empty before the first) and the text below it."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfc:
    """One RFC. ``sections`` is the body; ``related`` the numbers it obsoletes or updates, or is by."""

    number: int
    title: str
    abstract: str
    sections: tuple[Section, ...]
    related: frozenset[int]

    @property
    def body(self) -> str:
        """The sections joined, each heading on its own line."""
        return "\n\n".join(f"{section.heading}\n\n{section.text}".strip() for section in self.sections)


def read_rfcs(folders: list[Path]) -> Iterator[Rfc]:
    """Yield the RFCs below ``folders`` by ascending number, each once, those without a readable body left out."""
    files: dict[int, Path] = {}
    for folder in folders:
        for path in folder.rglob("rfc*.txt.gz"):
            match = re.fullmatch(r"rfc(\d+)\.txt\.gz", path.name)
            if match and path.with_name(f"rfc{match[1]}.json").exists():
                files.setdefault(int(match[1]), path)
    for number in sorted(files):
        path = files[number]
        about = json.loads(path.with_name(f"rfc{number}.json").read_bytes())
        rfc = parse_rfc(number, gzip.decompress(path.read_bytes()).decode("utf-8", "replace"), about)
        if rfc is not None:
            yield rfc


def parse_rfc(number: int, text: str, about: dict[str, object]) -> Rfc | None:
    """Parse one RFC's text and its index entry; ``None`` where no first section is found."""
    sections = split_sections(strip_pages(text))
    if not sections:
        return None
    related = {
        int(digits)
        for key in _RELATIONS
        for item in _strings(about.get(key))
        for digits in re.findall(r"RFC\s*0*(\d+)", item)
    }
    return Rfc(
        number=number,
        title=_flat(str(about.get("title") or "")),
        abstract=_flat(str(about.get("abstract") or "")),
        sections=tuple(sections),
        related=frozenset(related - {number}),
    )


def strip_pages(text: str) -> list[str]:
    """The lines of the text without running headers and footers, runs of blank lines folded into one."""
    lines: list[str] = []
    for raw in text.replace("\r", "").replace("\f", "\n").split("\n"):
        line = raw.rstrip()
        if _FOOTER.search(line) or _HEADER.match(line):
            # the text goes on after a page break: drop the blank lines the break put in
            while lines and not lines[-1]:
                lines.pop()
            lines.append("")
        elif line or (lines and lines[-1]):
            lines.append(line)
    return lines


def split_sections(lines: list[str]) -> list[Section]:
    """Cut the lines at section headings, from the first section that is not a line of the contents."""
    heads = [(at, title) for at in range(len(lines)) if (title := _heading(lines, at)) is not None]
    sections = []
    ends = [at for at, _ in heads[1:]] + [len(lines)]
    for (at, title), following in zip(heads, ends, strict=False):
        sections.append(Section(heading=title, text="\n".join(lines[at + 1 : following]).strip()))
    return sections


def _heading(lines: list[str], at: int) -> str | None:
    """The heading on this line, or ``None``: a numbered line on its own that is not an entry of the contents."""
    before = lines[at - 1] if at else ""
    after = lines[at + 1] if at + 1 < len(lines) else ""
    if before or after:
        return None
    match = _NUMBERED.match(lines[at]) or _APPENDIX.match(lines[at])
    if match is None or _CONTENTS_LINE.search(lines[at]):
        return None
    return _flat(match["title"]).strip(" .:")


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _strings(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
