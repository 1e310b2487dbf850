"""HTML manuals, man pages and PDFs as titled documents cut into sections."""

from __future__ import annotations

import gzip
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lmk_rag.evaluation.sources.rfc import Section

_DROPPED = (
    "script, style, nav, header, footer, head, form, noscript, .headerlink, .sphinxsidebar, .related, .footer, "
    ".header, .navheader, .navfooter, .toc, .sidebar, .contents, div.nav, #toc, #page-header, #quickview, .top, .up"
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5"})
_BLOCKS = frozenset(
    {"p", "pre", "li", "dt", "dd", "td", "th", "div", "section", "blockquote", "table", "tr", "ul", "ol", "dl"}
)
_MAN_HEADING = re.compile(r"^(?=\S)[^\s(].*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """One titled document. ``sections`` has the text under each heading; the first may have no heading."""

    title: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """The sections joined, each heading on its own line."""
        return "\n\n".join(f"{part.heading}\n\n{part.text}".strip() for part in self.sections)


def read_bytes(path: Path) -> bytes:
    """The file's bytes, unpacked where its name ends in ``.gz``."""
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def parse_html(raw: bytes | str) -> Manual | None:
    """Cut an HTML page at its headings; navigation and contents lists are left out; ``None`` without any text."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(raw)
    for node in tree.css(_DROPPED):
        node.decompose()
    body = tree.css_first("div[role=main]") or tree.css_first("div.body") or tree.css_first("main") or tree.body
    if body is None:
        return None
    sections: list[Section] = []
    heading, lines = "", list[str]()
    for tag, text in _pieces(body):
        if tag in _HEADINGS:
            _close(sections, heading, lines)
            heading, lines = _heading(text), []
        else:
            lines.append(text)
    _close(sections, heading, lines)
    title = next((part.heading for part in sections if part.heading), "")
    return Manual(title=title, sections=tuple(sections)) if sections else None


def parse_man(path: Path) -> Manual | None:
    """Render a man page as plain text with groff; its title is the line under NAME, which is left out of the text."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-P-cbou", "-k"], input=read_bytes(path), capture_output=True, check=False
    )
    text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout.decode("utf-8", "replace"))
    sections: list[Section] = []
    heading, lines = "", list[str]()
    for line in text.splitlines()[1:]:
        if _MAN_HEADING.match(line) and line.upper() == line:
            _close(sections, heading, lines, "\n")
            heading, lines = line.strip(), []
        else:
            lines.append(line.strip())
    _close(sections, heading, lines[:-1], "\n")
    name = next((part for part in sections if part.heading == "NAME"), None)
    if name is None:
        return None
    title = re.sub(r"\s+", " ", name.text)
    return Manual(title=title, sections=tuple(part for part in sections if part is not name))


def parse_pdf(path: Path) -> Manual | None:
    """Take a PDF's text, one section a page; its title is its metadata's; ``None`` where it cannot be read."""
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(read_bytes(path))
        title = (pdf.get_metadata_dict().get("Title") or "").strip()
        pages = [page.get_textpage().get_text_bounded() for page in pdf]
    except pypdfium2.PdfiumError:
        return None
    sections = tuple(Section(heading="", text=page.replace("\r", "").strip()) for page in pages if page.strip())
    return Manual(title=title, sections=sections) if sections else None


def _pieces(node: object) -> list[tuple[str, str]]:
    """The text below a node in reading order: (tag, text) for each heading, ("", text) for each block."""
    pieces: list[tuple[str, str]] = []
    buffer: list[str] = []

    def flush(verbatim: bool = False) -> None:
        text = "".join(buffer)
        buffer.clear()
        text = text.strip("\n") if verbatim else re.sub(r"\s+", " ", text).strip()
        if text.strip():
            pieces.append(("", text))

    def walk(element: object) -> None:
        for child in element.iter(include_text=True):  # type: ignore[attr-defined]
            tag = child.tag
            if tag == "-text":
                buffer.append(child.text_content or "")
            elif tag in _HEADINGS:
                flush()
                pieces.append((tag, child.text(deep=True)))
            elif tag in _BLOCKS:
                flush()
                walk(child)
                flush(verbatim=tag == "pre")
            else:
                walk(child)

    walk(node)
    flush()
    return pieces


def _heading(text: str) -> str:
    """A heading in one line, without its number and the permalink's sign."""
    flat = re.sub(r"\s+", " ", text.replace("¶", "")).strip()
    return (
        re.sub(r"^(?:(?:Chapter|Appendix|Section)\s+)?(?:\d+|[A-Z])(?:\.\d+)*\.?\s+(?=\w)", "", flat).strip(" #§")
        or flat
    )


def _close(sections: list[Section], heading: str, blocks: list[str], between: str = "\n\n") -> None:
    text = between.join(blocks).strip()
    if heading or text:
        sections.append(Section(heading=heading, text=text))
