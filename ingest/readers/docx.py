"""Word documents (DOCX) by python-docx."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from lxml import etree
from lxml.etree import _Element

from ingest.readers import OpenFile, ReadError, whole
from ingest.readers.blocks import tag_of
from ingest.readers.compressed import open_archive, refuse_doctype
from ingest.readers.titles import sensible

_PROPERTIES = {
    "author": "author",
    "subject": "subject",
    "keywords": "keywords",
    "category": "category",
    "comments": "comments",
    "language": "language",
    "created": "created",
    "modified": "modified",
    "last_modified_by": "last_modified_by",
}
_TITLE_STYLES = re.compile(r"title|heading 1", re.IGNORECASE)
# Deleted text, and the copy of a shape for old readers.
_PASSED_OVER = frozenset(("del", "moveFrom", "Fallback", "pPr", "rPr", "delText", "instrText"))
_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
_SEPARATOR_NOTES = frozenset(("separator", "continuationSeparator", "continuationNotice"))


def open_file(path: Path) -> OpenFile:
    """Open a Word document as one page: paragraphs and tables in their order, then the notes.

    Raises:
        ReadError: It is no Word document, damaged, encrypted or too large.
    """
    with open_archive(path, "a DOCX") as archive:
        refuse_doctype(archive, [name for name in archive.namelist() if name.endswith((".xml", ".rels"))])
    try:
        document = docx.Document(str(path))
    except (OpcError, KeyError, ValueError, AttributeError, etree.XMLSyntaxError) as error:
        raise ReadError(f"damaged: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error
    text = "".join([*_blocks(document.element.body), *_notes(document)]).strip("\n")
    title = sensible(document.core_properties.title) or _styled_title(document)
    return whole("docx", (text,), title=title, metadata=_metadata(document))


def _blocks(root: _Element) -> Iterator[str]:
    """Give paragraphs and table rows, each with its line ends, wherever they are nested."""
    for element in root:
        name = _local(element)
        if name in _PASSED_OVER:
            continue
        if name == "p":
            yield _paragraph(element)
        elif name == "tbl":
            yield from _table(element)
        elif name is not None:
            yield from _blocks(element)


def _paragraph(element: _Element) -> str:
    ends = "\n" if element.find("./{*}pPr/{*}numPr") is not None else "\n\n"
    return "".join(_runs(element)) + ends


def _runs(element: _Element) -> Iterator[str]:
    """Give the text below a paragraph; the paragraphs of a text box in it stand on lines of their own."""
    for child in element:
        name = _local(child)
        if name is None or name in _PASSED_OVER:
            continue
        if name == "t":
            yield child.text or ""
        elif name in _CHARACTERS:
            yield _CHARACTERS[name]
        elif name == "txbxContent":
            yield "\n" + "".join(_blocks(child)).strip("\n") + "\n"
        elif name in {"footnoteReference", "endnoteReference"}:
            yield f"[{_attribute(child, 'id')}]"
        else:
            yield from _runs(child)


def _table(element: _Element) -> Iterator[str]:
    for row in _below(element, "tr"):
        cells = ("".join(_blocks(cell)).strip("\n").replace("\n\n", "\n") for cell in _below(row, "tc"))
        yield "\t".join(cells) + "\n"
    yield "\n"


def _below(element: _Element, name: str) -> Iterator[_Element]:
    """Give rows or cells, those inside content controls and tracked insertions too."""
    for child in element:
        local = _local(child)
        if local == name:
            yield child
        elif local not in _PASSED_OVER and local not in {None, "tbl", "p"}:
            yield from _below(child, name)


def _notes(document: Document) -> Iterator[str]:
    for kind in (RELATIONSHIP_TYPE.FOOTNOTES, RELATIONSHIP_TYPE.ENDNOTES):
        try:
            part = document.part.part_related_by(kind)
        except KeyError:
            continue
        parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
        for note in etree.fromstring(part.blob, parser):
            if tag_of(note) in {"footnote", "endnote"} and _attribute(note, "type") not in _SEPARATOR_NOTES:
                yield f"[{_attribute(note, 'id')}] " + "".join(_blocks(note)).strip() + "\n"


def _styled_title(document: Document) -> str:
    for paragraph in document.paragraphs:
        if (
            paragraph.style is not None
            and _TITLE_STYLES.fullmatch(paragraph.style.name or "")
            and paragraph.text.strip()
        ):
            return " ".join(paragraph.text.split())
    return ""


def _metadata(document: Document) -> dict[str, Any]:
    properties = document.core_properties
    values = {key: getattr(properties, name) for name, key in _PROPERTIES.items()}
    return {key: value.isoformat() if hasattr(value, "isoformat") else value for key, value in values.items() if value}


def _attribute(element: _Element, name: str) -> str:
    """Give an attribute by its local name, "" where there is none."""
    return next((str(value) for key, value in element.attrib.items() if str(key).rpartition("}")[2] == name), "")


def _local(element: _Element) -> str | None:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else None
