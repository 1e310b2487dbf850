"""Which line of a text, or which claim of a file about itself, is its title."""

import itertools
import re
from collections.abc import Iterable, Iterator

_LONGEST = 160
_LINES_TRIED = 60
_CHARACTERS_TRIED = 8000
_CENTRED_LINES = 3
_PLACEHOLDER = re.compile(
    r"""(?ix) ^(?: untitled\b.* | (?:new\s)?document\s?\d* | title | no\stitle | none | unknown | microsoft\sword\b.*
    | powerpoint\s.* | slide\s\d+
    | .*\.(?:docx?|dvi|e?ps|fm|html?|indd|lyx|ltx|md|odt|pdf|pptx?|qxd|rtf|sgml?|tex|txt|xlsx?|xml)
    | (?:[a-z]:)?[\\/]\S* | \W* )$"""
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_COLUMNS = re.compile(r"\S[ \t]{3,}\S")
_UNDERLINE = re.compile(r"^\s*([=\-~^*#])\1{3,}\s*$")
_PAGE_WIDTH = 72


def sensible(title: str | None) -> str:
    """Give the title on one line, or "" where it is a placeholder or a file's name."""
    title = _one_line(title or "")
    if _PLACEHOLDER.match(title) or not _LETTERS.search(title):
        return ""
    return title


def title_line(pages: Iterable[str]) -> str:
    """Give the line near the start that reads most like a title, or "".

    An underlined line comes first, then centred lines (as in an RFC), then the first line that could be one.
    """
    lines = _first_lines(pages)
    candidates = [index for index, line in enumerate(lines) if _could_be_title(line)]
    for index in candidates:
        if index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1]):
            return _one_line(lines[index])
    for paragraph in _paragraphs(lines):
        if len(paragraph) <= _CENTRED_LINES and all(_could_be_title(line) and _centred(line) for line in paragraph):
            return _one_line(" ".join(paragraph))
    left = (line for line in (lines[index] for index in candidates) if _indent(line) < _PAGE_WIDTH // 2)
    return _one_line(next(left, ""))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _first_lines(pages: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for page in pages:
        lines += [line.rstrip() for line in page[:_CHARACTERS_TRIED].splitlines()]
        if len(lines) >= _LINES_TRIED:
            break
    return lines[:_LINES_TRIED]


def _could_be_title(line: str) -> bool:
    text = line.strip()
    return (
        3 <= len(text) <= _LONGEST
        and bool(_LETTERS.search(text))
        and not _COLUMNS.search(text)
        and text[-1] not in ".,;:"
        and "://" not in text
    )


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    for has_text, paragraph in itertools.groupby(lines, key=bool):
        if has_text:
            yield list(paragraph)


def _centred(line: str) -> bool:
    left = _indent(line)
    return left >= 1 and abs(left - (_PAGE_WIDTH - len(line))) <= 4


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
