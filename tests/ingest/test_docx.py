import datetime
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.oxml import parse_xml

from ingest.parsing import parse_file
from ingest.readers import ParsedFile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def read(path: Path) -> ParsedFile:
    parsed = parse_file(path)
    assert parsed.reason is None
    assert parsed.file is not None
    return parsed.file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.docx"


def test_paragraphs_headings_lists_and_tables_in_their_order(path: Path) -> None:
    document = docx.Document()
    document.add_heading("First heading", 1)
    paragraph = document.add_paragraph("A paragraph in ")
    paragraph.add_run("bo").bold = True
    paragraph.add_run("ld.\tA tab\nand a line.")
    table = document.add_table(2, 2)
    for row, cells in enumerate(table.rows):
        for column, cell in enumerate(cells.cells):
            cell.text = f"cell {row}{column}"
    document.add_paragraph("After the table.")
    document.sections[0].header.paragraphs[0].text = "PAGE HEADER"
    document.save(str(path))
    file = read(path)
    assert file.kind == "docx"
    assert file.title == "First heading"
    assert file.pages == (
        "First heading\n\nA paragraph in bold.\tA tab\nand a line.\n\n"
        "cell 00\tcell 01\ncell 10\tcell 11\n\nAfter the table.",
    )


def test_core_properties(path: Path) -> None:
    document = docx.Document()
    document.add_heading("A heading", 1)
    properties = document.core_properties
    properties.title, properties.author, properties.subject, properties.keywords = "Report", "Ann", "Tests", "a, b"
    properties.created = datetime.datetime(2020, 1, 2, 3, 4, 5)
    document.save(str(path))
    file = read(path)
    assert file.title == "Report"
    assert file.metadata["author"] == "Ann"
    assert file.metadata["subject"] == "Tests"
    assert file.metadata["keywords"] == "a, b"
    assert file.metadata["created"].startswith("2020-01-02T03:04:05")


def add(document: Any, xml: str) -> None:
    document.element.body.insert(0, parse_xml(xml))


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        # An insertion that is tracked is text, a deletion is none.
        (
            f"<w:p {W}><w:r><w:t>old </w:t></w:r><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
            "<w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del>"
            "<w:moveFrom><w:r><w:t>gone</w:t></w:r></w:moveFrom></w:p>",
            "old new",
        ),
        # A content control around a paragraph, and around a run.
        (f"<w:sdt {W}><w:sdtContent><w:p><w:r><w:t>controlled</w:t></w:r></w:p></w:sdtContent></w:sdt>", "controlled"),
        (
            f"<w:p {W}><w:sdt><w:sdtContent><w:r><w:t>in</w:t></w:r></w:sdtContent></w:sdt>"
            "<w:hyperlink><w:r><w:t>side</w:t></w:r></w:hyperlink></w:p>",
            "inside",
        ),
        (f"<w:p {W}><w:r><w:t>one</w:t><w:noBreakHyphen/><w:t>two</w:t></w:r></w:p>", "one\u2011two"),
        # A text box is written twice, the second time for old readers.
        (
            f'<w:p {W}><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
            '<mc:Choice Requires="x"><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></mc:Choice>'
            "<mc:Fallback><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></mc:Fallback>"
            "</mc:AlternateContent></w:r></w:p>",
            "boxed",
        ),
    ],
)
def test_text_wherever_it_stands(path: Path, xml: str, text: str) -> None:
    document = docx.Document()
    add(document, xml)
    document.save(str(path))
    assert read(path).pages == (text,)


def test_footnotes_come_last(path: Path) -> None:
    document = docx.Document()
    add(document, f'<w:p {W}><w:r><w:t>Claim.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>')
    document.save(str(path))
    footnotes = (
        f'<w:footnotes {W}><w:footnote w:id="0" w:type="separator"><w:p><w:r><w:t>---</w:t></w:r></w:p></w:footnote>'
        '<w:footnote w:id="2"><w:p><w:r><w:t>The source.</w:t></w:r></w:p></w:footnote></w:footnotes>'
    )
    relation = (
        '<Relationship Id="rIdNotes" Target="footnotes.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"/>'
    )
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    rewrite(
        path,
        {
            "word/_rels/document.xml.rels": lambda xml: xml.replace("</Relationships>", relation + "</Relationships>"),
            "[Content_Types].xml": lambda xml: xml.replace(
                "</Types>", f'<Override PartName="/word/footnotes.xml" ContentType="{kind}"/></Types>'
            ),
        },
        {"word/footnotes.xml": footnotes},
    )
    assert read(path).pages == ("Claim.[2]\n\n[2] The source.",)


def rewrite(path: Path, changes: dict[str, Callable[[str], str]], new: dict[str, str] | None = None) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name, change in changes.items():
        members[name] = change(members[name].decode()).encode()
    members |= {name: text.encode() for name, text in (new or {}).items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_a_document_type_is_refused(path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("text")
    document.save(str(path))
    bomb = '?>\n<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>'
    rewrite(path, {"word/document.xml": lambda xml: xml.replace("?>", bomb, 1)})
    assert parse_file(path).reason == (
        "damaged: word/document.xml declares a document type, which this format does not have"
    )


def test_no_text(path: Path) -> None:
    docx.Document().save(str(path))
    assert parse_file(path).reason == "no text"


def test_encrypted(path: Path) -> None:
    ole = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600)
    path.write_bytes(ole + "EncryptedPackage".encode("utf-16-le") + bytes(100))
    assert parse_file(path).reason == "needs a password"
    path.write_bytes(ole + "WordDocument".encode("utf-16-le"))
    assert parse_file(path).reason == "not a DOCX: an older office format"


@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_no_archive(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    assert parse_file(path).reason == "not a DOCX: File is not a zip file"


def test_an_archive_of_something_else(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "text")
    reason = parse_file(path).reason
    assert reason is not None
    assert reason.startswith("damaged: ")
