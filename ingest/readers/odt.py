"""OpenDocument text (ODT) by odfdo."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import odfdo
from lxml import etree

from ingest.readers import NEEDS_PASSWORD, OpenFile, ReadError, whole
from ingest.readers.compressed import open_archive, read_member, refuse_doctype
from ingest.readers.titles import sensible

_PASSED_OVER = frozenset(
    ("text:tracked-changes", "text:sequence-decls", "office:annotation", "office:annotation-end", "office:forms")
)
_TEXT_TYPES = frozenset(b"application/vnd.oasis.opendocument.text" + end for end in (b"", b"-template", b"-master"))
_LINE = "\n"
_BLANK_LINE = "\n\n"


def open_file(path: Path) -> OpenFile:
    """Open an OpenDocument text as one page: headings, paragraphs, lists and tables in their order, then the notes.

    Raises:
        ReadError: It is no OpenDocument text, damaged, encrypted or too large.
    """
    with open_archive(path, "an ODT") as archive:
        _check(archive)
    try:
        document = odfdo.Document(path)
        notes: list[str] = []
        text = "".join(_blocks(document.body, notes)) + "".join(f"{note}\n" for note in notes)
        meta = _metadata(document.meta)
    except (etree.XMLSyntaxError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ReadError(f"damaged: {str(error) or type(error).__name__}") from error
    title = sensible(meta.pop("title", "")) or _styled_title(document.body)
    return whole("odt", (text.strip("\n"),), title=title, metadata=meta)


def _check(archive: zipfile.ZipFile) -> None:
    kind = (read_member(archive, "mimetype") or b"").strip()
    if kind and kind not in _TEXT_TYPES:
        raise ReadError(f"not an ODT: its type is {kind[:80].decode('ascii', 'replace')}")
    if b"encryption-data" in (read_member(archive, "META-INF/manifest.xml") or b""):
        raise ReadError(NEEDS_PASSWORD)
    names = set(archive.namelist())
    if "content.xml" not in names:
        raise ReadError("not an ODT: it has no content.xml")
    refuse_doctype(archive, names & {"content.xml", "meta.xml", "styles.xml", "settings.xml"})


def _blocks(root: odfdo.Element, notes: list[str], end: str = _BLANK_LINE) -> Iterator[str]:
    """Give headings, paragraphs, list items and table rows, each with its line ends."""
    for element in root.children:
        match element.tag:
            case "text:h" | "text:p":
                yield _inline(element, notes) + end
            case "text:list":
                yield from _blocks(element, notes, _LINE)
                yield _LINE if end == _BLANK_LINE else ""
            case "table:table":
                yield from _rows(element, notes)
                yield _LINE
            case tag if tag not in _PASSED_OVER:
                yield from _blocks(element, notes, end)


def _rows(table: odfdo.Element, notes: list[str]) -> Iterator[str]:
    for element in table.children:
        if element.tag == "table:table-row":
            cells = [
                "".join(_blocks(cell, notes, _LINE)).strip("\n")
                for cell in element.children
                if cell.tag in {"table:table-cell", "table:covered-table-cell"}
            ]
            yield "\t".join(cells).rstrip("\t") + "\n"
        else:
            yield from _rows(element, notes)


def _inline(element: odfdo.Element, notes: list[str]) -> str:
    """Give the running text of a paragraph; a note leaves its mark, and its text among the notes.

    The elements for repeated blanks, tabs and line ends have these as their text in odfdo.
    """
    parts = [element.text or ""]
    for child in element.children:
        match child.tag:
            case "text:note":
                parts.append(_note(child, notes))
            case "draw:text-box":
                parts.append("\n" + "".join(_blocks(child, notes, _LINE)).strip("\n") + "\n")
            case tag if tag not in _PASSED_OVER:
                parts.append(_inline(child, notes))
        parts.append(child.tail or "")
    return "".join(parts)


def _note(element: odfdo.Element, notes: list[str]) -> str:
    mark = ""
    for child in element.children:
        if child.tag == "text:note-citation":
            mark = f"[{child.text or ''}]"
        elif child.tag == "text:note-body":
            notes.append(f"{mark} " + "".join(_blocks(child, [], _LINE)).strip())
    return mark


def _styled_title(body: odfdo.Element) -> str:
    for element in body.children:
        style = element.get_attribute_string("text:style-name") or ""
        if (element.tag == "text:h" or style == "Title") and (title := sensible(_inline(element, []))):
            return title
    return ""


def _metadata(meta: odfdo.Meta) -> dict[str, Any]:
    values = {
        "title": meta.title,
        "author": meta.initial_creator or meta.creator,
        "subject": meta.subject or meta.description,
        "keywords": ", ".join(keyword.text or "" for keyword in meta.get_elements("//meta:keyword")),
        "language": meta.language,
        "created": meta.creation_date,
        "modified": meta.date,
        "producer": meta.generator,
    }
    return {key: value.isoformat() if hasattr(value, "isoformat") else value for key, value in values.items() if value}
