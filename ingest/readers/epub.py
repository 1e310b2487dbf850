"""EPUB: the chapters in the order of the book's spine, each read as HTML."""

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from lxml import etree
from lxml.etree import _Element

from ingest.cleaning import has_text
from ingest.readers import NEEDS_PASSWORD, OpenFile, ReadError, whole
from ingest.readers.blocks import tag_of
from ingest.readers.compressed import open_archive, read_member
from ingest.readers.html import decode_html, read_html
from ingest.readers.titles import sensible

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# Fonts are often scrambled, which hides no text.
_FONT_SCRAMBLING = frozenset(("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"))
_CHAPTER_TYPES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"))
_METADATA = {
    "creator": "author",
    "subject": "subject",
    "description": "description",
    "publisher": "publisher",
    "language": "language",
    "date": "created",
    "identifier": "identifier",
    "rights": "rights",
}


def open_file(path: Path) -> OpenFile:
    """Open a book; each chapter with text is a page.

    Raises:
        ReadError: It is no EPUB, damaged, encrypted or too large.
    """
    with open_archive(path, "an EPUB") as archive:
        if _encrypted(archive):
            raise ReadError(NEEDS_PASSWORD)
        package_name = _package_name(archive)
        package = _xml(archive, package_name)
        if package is None:
            raise ReadError(f"damaged: it has no {package_name}")
        pages: list[str] = []
        warnings: list[str] = []
        for name in _chapters(package, posixpath.dirname(package_name)):
            data = read_member(archive, name)
            if data is None:
                warnings.append(f"chapter {name} is missing")
                continue
            text = _chapter(data)
            if has_text(text):
                pages.append(text)
    metadata = _metadata(package)
    title = sensible(metadata.pop("title", ""))
    return whole("epub", tuple(pages) or ("",), title=title, metadata=metadata, warnings=tuple(warnings))


def _chapter(data: bytes) -> str:
    source, _ = decode_html(data)
    try:
        return read_html(source, xml=True).page(0)
    except ReadError:
        return ""


def _encrypted(archive: zipfile.ZipFile) -> bool:
    root = _xml(archive, _ENCRYPTION)
    if root is None:
        return False
    methods = (element.get("Algorithm") for element in _named(root, "encryptionmethod"))
    return any(method not in _FONT_SCRAMBLING for method in methods)


def _package_name(archive: zipfile.ZipFile) -> str:
    root = _xml(archive, _CONTAINER)
    files = _named(root, "rootfile") if root is not None else iter(())
    name = next((element.get("full-path") for element in files), None)
    if not name:
        raise ReadError(f"not an EPUB: no package file is named in {_CONTAINER}")
    return str(name)


def _chapters(package: _Element, folder: str) -> Iterator[str]:
    """Give the names of the chapters' files in reading order, the table of contents left out."""
    items = {element.get("id"): element for element in _named(package, "item")}
    for reference in _named(package, "itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _CHAPTER_TYPES:
            continue
        address = (item.get("href") or "").partition("#")[0]
        if address and "nav" not in (item.get("properties") or "").split():
            yield posixpath.normpath(posixpath.join(folder, unquote(address)))


def _metadata(package: _Element) -> dict[str, str]:
    """Give the Dublin Core terms; a term that is given several times has all its values, joined by commas."""
    found: dict[str, list[str]] = {}
    metadata = next(_named(package, "metadata"), None)
    for element in metadata.iter() if metadata is not None else ():
        name = tag_of(element)
        value = " ".join((element.text or "").split())
        if name == "title":
            found.setdefault("title", [value])
        elif name in _METADATA and value:
            found.setdefault(_METADATA[name], []).append(value)
    return {key: ", ".join(values) for key, values in found.items()}


def _xml(archive: zipfile.ZipFile, name: str) -> _Element | None:
    """Parse a member; None where there is none.

    Raises:
        ReadError: It is not well-formed.
    """
    data = read_member(archive, name)
    if data is None:
        return None
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ReadError(f"damaged: {name}: {error.msg}") from error


def _named(root: _Element, name: str) -> Iterator[_Element]:
    return (element for element in root.iter() if tag_of(element) == name)
