"""HTML and XHTML: the visible main text, navigation and scripts left out."""

import codecs
import html
import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree
from lxml.etree import _Element

from ingest.cleaning import Counts, has_text, join_surrogates
from ingest.readers import OpenFile, ReadError, whole
from ingest.readers.blocks import tag_of, text_of
from ingest.readers.compressed import read_bytes
from ingest.readers.decoding import decode
from ingest.readers.titles import sensible

_XML_START = re.compile(r"\s*<\?xml\b[^>]*\?>")
_XHTML = re.compile(r"""<html[^>]*\bxmlns\s*=\s*["']http://www\.w3\.org/1999/xhtml""")
_CHARSET = re.compile(rb"""<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_CHARSET_WITHIN = 4096
_NAMED_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)([A-Za-z][A-Za-z0-9]+;)")

# fmt: off
_UNSEEN = frozenset((
    "aside", "audio", "button", "canvas", "datalist", "dialog", "embed", "head", "iframe", "nav", "noscript", "object",
    "script", "select", "style", "svg", "template", "video",
))
_UNSEEN_ROLES = frozenset((
    "banner", "complementary", "contentinfo", "menu", "menubar", "navigation", "search", "toolbar",
))
_UNSEEN_CLASSES = frozenset((
    "breadcrumb", "breadcrumbs", "headerlink", "navbar", "navfooter", "navheader", "noprint", "sidebar", "skip-link",
    "skip-nav", "sphinxsidebar",
))
# fmt: on
_PAGE_FRAME = frozenset(("header", "footer"))
_METADATA = {
    "author": "author",
    "dc.creator": "author",
    "dcterms.creator": "author",
    "description": "subject",
    "keywords": "keywords",
    "date": "created",
    "dc.date": "created",
    "dcterms.date": "created",
    "dcterms.created": "created",
    "article:published_time": "created",
    "generator": "producer",
}


def open_file(path: Path) -> OpenFile:
    """Open an HTML file as one page.

    Raises:
        ReadError: It is not text, has no elements at all, or is larger than the limit.
    """
    text, warnings = decode_html(read_bytes(path))
    return read_html(text, xml=path.name.lower().endswith(".xhtml"), warnings=warnings)


def read_html(text: str, *, xml: bool = False, warnings: tuple[str, ...] = ()) -> OpenFile:
    """Read a page from its source.

    Args:
        text: The source; `xml` says that it is XHTML even where it does not say so itself.
        xml: As above.
        warnings: Passed on.
    """
    nuls = text.count("\0")
    root = _parse(text.replace("\0", ""), xml=xml)
    title = sensible(_first_text(root, "title")) or sensible(_first_text(root, "h1"))
    metadata = dict(_metadata(root))
    return whole(
        "html", (_main_text(root),), title=title, metadata=metadata, warnings=(*warnings, *Counts(nuls).warnings())
    )


def decode_html(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode by byte order mark, then by what the page says of itself, then as any text."""
    stated = _CHARSET.search(data[:_CHARSET_WITHIN])
    if stated and not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = _python_name(stated.group(1).decode("ascii", "replace"))
        if encoding:
            try:
                return data.decode(encoding), ()
            except UnicodeDecodeError:
                pass
    return decode(data)


def _python_name(label: str) -> str | None:
    """Give the codec that browsers use for an encoding's label."""
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    if not name.startswith(("utf", "iso8859", "cp", "koi8", "gb", "big5", "euc", "shift", "iso2022", "mac", "ascii")):
        return None
    return "cp1252" if name in {"iso8859-1", "ascii"} else name


def _parse(text: str, *, xml: bool) -> _Element:
    text, _ = join_surrogates(text)
    if xml or _XML_START.match(text) or _XHTML.search(text[:_CHARSET_WITHIN]):
        root = _parse_xml(text)
        if root is not None:
            return root
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False, remove_pis=True)
    try:
        root = etree.fromstring(_XML_START.sub("", text, count=1).encode(), parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        raise ReadError("no text")
    return root


def _parse_xml(text: str) -> _Element | None:
    """Parse well-formed XHTML, for which an empty ``<title/>`` is no open element; None where it is not well-formed."""
    text = _NAMED_ENTITY.sub(lambda match: html.unescape(match.group()), _XML_START.sub("", text, count=1))
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False, remove_pis=True
    )
    try:
        return etree.fromstring(text.encode(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def _main_text(root: _Element) -> str:
    body = next(_named(root, "body"), root)
    for main in _main_elements(body):
        text = text_of(main, frozenset(_unseen(main, frame=False)))
        if has_text(text):
            return text
    return text_of(body, frozenset(_unseen(body, frame=True)))


def _main_elements(body: _Element) -> Iterator[_Element]:
    """Give what the page itself marks as its main content, the best mark first."""
    marked = [element for element in _elements(body) if _is_main(element)]
    marked = [element for element in marked if not any(map(_is_main, element.iterancestors()))]
    articles = list(_named(body, "article"))
    if len(marked) == 1:
        yield marked[0]
    elif not marked and len(articles) == 1:
        yield articles[0]


def _is_main(element: _Element) -> bool:
    return element.get("role") == "main" or tag_of(element) == "main"


def _unseen(root: _Element, *, frame: bool) -> Iterator[_Element]:
    """Give what is no content; `frame` counts the header and footer of the whole page to it."""
    for element in _elements(root):
        if element is root:
            continue
        name = tag_of(element)
        if (
            name in _UNSEEN
            or element.get("role") in _UNSEEN_ROLES
            or element.get("hidden") is not None
            or element.get("aria-hidden") == "true"
            or "display:none" in (element.get("style") or "").replace(" ", "").lower()
            or not _UNSEEN_CLASSES.isdisjoint((element.get("class") or "").split())
            or (frame and name in _PAGE_FRAME and not _inside_article(element))
        ):
            yield element


def _inside_article(element: _Element) -> bool:
    return any(tag_of(above) in {"article", "section", "main"} for above in element.iterancestors())


def _metadata(root: _Element) -> Iterator[tuple[str, str]]:
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    if language:
        yield "language", language
    for meta in _named(root, "meta"):
        key = _METADATA.get((meta.get("name") or meta.get("property") or "").lower())
        value = meta.get("content")
        if key and value:
            yield key, value


def _first_text(root: _Element, name: str) -> str:
    for element in _named(root, name):
        if not any(tag_of(above) == "svg" for above in element.iterancestors()):
            return text_of(element, frozenset(_unseen(element, frame=False)))
    return ""


def _named(root: _Element, name: str) -> Iterator[_Element]:
    return (element for element in _elements(root) if tag_of(element) == name)


def _elements(root: _Element) -> Iterator[_Element]:
    return (element for element in root.iter() if isinstance(element.tag, str))
