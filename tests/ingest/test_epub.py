import zipfile
from pathlib import Path

import pytest

from ingest.parsing import parse_file

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>The Book</dc:title><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator><dc:language>en</dc:language>
</metadata><manifest>
<item id="two" href="text/second%20part.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="../one.xhtml" media-type="application/xhtml+xml"/>
<item id="cover" href="cover.xhtml" media-type="application/xhtml+xml"/>
<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>
<item id="pic" href="pic.png" media-type="image/png"/>
<item id="lost" href="lost.xhtml" media-type="application/xhtml+xml"/>
</manifest><spine><itemref idref="nav"/><itemref idref="cover"/><itemref idref="one"/><itemref idref="pic"/>
<itemref idref="two"/><itemref idref="lost"/><itemref idref="unknown"/></spine></package>"""
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "one.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><h1>One</h1>'
    "<p>It was a <b>dark</b> and stor<i>my</i> night&#8212;really.</p></body></html>",
    "OEBPS/text/second part.xhtml": '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
    "<body><h1>Two</h1><pre>a\n  b</pre><p>Caf&eacute;</p></body></html>",
    "OEBPS/cover.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body><img src="x.png"/></body></html>',
    "OEBPS/nav.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>CONTENTS</p></body></html>',
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "book.epub"


def write(path: Path, changes: dict[str, str | None] | None = None) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (BOOK | (changes or {})).items():
            if text is not None:
                archive.writestr(name, text)


def test_chapters_with_text_in_the_order_of_the_spine(path: Path) -> None:
    write(path)
    file = parse_file(path).file
    assert file is not None
    assert file.kind == "epub"
    assert file.pages == ("One\n\nIt was a dark and stormy night—really.", "Two\n\na\n  b\n\nCafé")
    assert file.title == "The Book"
    assert file.metadata == {"author": "Ann, Bob", "language": "en"}
    assert file.warnings == ("chapter OEBPS/lost.xhtml is missing",)


def encryption(algorithm: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
        f'<enc:EncryptedData><enc:EncryptionMethod Algorithm="{algorithm}"/></enc:EncryptedData></encryption>'
    )


def test_encrypted_text_needs_a_password(path: Path) -> None:
    write(path, {"META-INF/encryption.xml": encryption("http://www.w3.org/2001/04/xmlenc#aes256-cbc")})
    assert parse_file(path).reason == "needs a password"


@pytest.mark.parametrize("algorithm", ["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"])
def test_scrambled_fonts_hide_nothing(path: Path, algorithm: str) -> None:
    write(path, {"META-INF/encryption.xml": encryption(algorithm)})
    assert parse_file(path).reason is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"META-INF/container.xml": None}, "not an EPUB: no package file is named in META-INF/container.xml"),
        ({"OEBPS/book.opf": None}, "damaged: it has no OEBPS/book.opf"),
        ({"one.xhtml": None, "OEBPS/text/second part.xhtml": "<p/>"}, "no text"),
    ],
)
def test_what_is_no_book(path: Path, changes: dict[str, str | None], reason: str) -> None:
    write(path, changes)
    assert parse_file(path).reason == reason


def test_a_damaged_package_is_told(path: Path) -> None:
    write(path, {"OEBPS/book.opf": "<package"})
    reason = parse_file(path).reason
    assert reason is not None
    assert reason.startswith("damaged: OEBPS/book.opf: ")
