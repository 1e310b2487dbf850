"""Plain text, reStructuredText and Markdown, as they stand."""

import json
import re
from pathlib import Path

from ingest.cleaning import without_terminal_codes
from ingest.readers import OpenFile, format_of, whole
from ingest.readers.compressed import read_bytes
from ingest.readers.decoding import decode
from ingest.readers.titles import sensible

_LINE_ENDS = re.compile("\r\n?")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"([A-Za-z_][\w .-]*?)[ \t]*:(?:[ \t]+(.*))?")
_LIST_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


def open_file(path: Path) -> OpenFile:
    r"""Open a text file; form feeds (``\f``) part its pages.

    Markdown keeps its marks; its title is the first heading, and YAML front matter goes to the metadata.

    Raises:
        ReadError: It is not text, or larger than the limit.
    """
    text, warnings = decode(read_bytes(path))
    text = without_terminal_codes(_LINE_ENDS.sub("\n", text))
    known = format_of(path)
    if known is None or known.kind != "markdown":
        return whole("text", _pages(text), warnings=warnings)
    metadata, text = split_front_matter(text)
    title = sensible(str(metadata.pop("title", ""))) or _first_heading(text)
    return whole("markdown", _pages(text), title=title, metadata=metadata, warnings=warnings)


def _pages(text: str) -> tuple[str, ...]:
    if "\f" not in text:
        return (text,)
    pages = [page.strip("\n") for page in text.split("\f")]
    while len(pages) > 1 and not pages[-1].strip():
        pages.pop()
    return tuple(pages)


def split_front_matter(text: str) -> tuple[dict[str, str | list[str]], str]:
    """Part YAML front matter from the text after it.

    Of YAML it knows what front matter is made of: ``key: value``, quotes, and lists in either form. A nested
    block is passed over.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    found: dict[str, str | list[str]] = {}
    key = ""
    for line in match.group(1).splitlines():
        if item := _LIST_ITEM.fullmatch(line):
            values = found.get(key)
            if isinstance(values, list):
                values.append(_scalar(item.group(1)))
        elif entry := _ENTRY.fullmatch(line):
            key, value = entry.group(1).lower(), (entry.group(2) or "").strip()
            found[key] = _list(value) if value.startswith("[") and value.endswith("]") else _scalar(value) or []
    return {key: value for key, value in found.items() if value}, text[match.end() :].lstrip("\n")


def _list(value: str) -> list[str]:
    return [_scalar(part) for part in value[1:-1].split(",") if part.strip()]


def _scalar(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value.partition(" #")[0].rstrip()


def _first_heading(text: str) -> str:
    """Give the first heading outside fenced code, of either form."""
    fence = ""
    previous = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
        elif not fence:
            if heading := _HEADING.fullmatch(line):
                return heading.group(1).strip()
            if previous and _UNDERLINE.fullmatch(line):
                return previous
            previous = line.strip()
    return ""
