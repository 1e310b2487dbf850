import zipfile
from pathlib import Path

import odfdo
import pytest

from ingest.parsing import parse_file
from ingest.readers import ParsedFile


def read(path: Path) -> ParsedFile:
    parsed = parse_file(path)
    assert parsed.reason is None
    assert parsed.file is not None
    return parsed.file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.odt"


def document() -> odfdo.Document:
    made = odfdo.Document("text")
    made.body.clear()
    return made


def test_headings_paragraphs_lists_tables_and_notes_in_their_order(path: Path) -> None:
    made = document()
    made.body.append(odfdo.Header(1, "First heading"))
    paragraph = odfdo.Paragraph("A paragraph in  ")
    paragraph.append(odfdo.Span("bo"))
    paragraph.append(odfdo.Span("ld."))
    paragraph.append("\tA tab\nand a line.")
    made.body.append(paragraph)
    table = odfdo.Table("T", width=2, height=2)
    for row in range(2):
        for column in range(2):
            table.set_value((column, row), f"cell {row}{column}")
    made.body.append(table)
    made.body.append(odfdo.List(["one", "two"]))
    noted = odfdo.Paragraph("A claim here.")
    noted.insert_note(after="claim", note_id="n1", citation="1", body="The source.")
    made.body.append(noted)
    made.save(path)
    file = read(path)
    assert file.kind == "odt"
    assert file.title == "First heading"
    assert file.pages == (
        "First heading\n\nA paragraph in  bold.\tA tab\nand a line.\n\ncell 00\tcell 01\ncell 10\tcell 11\n\n"
        "one\ntwo\n\nA claim[1] here.\n\n[1] The source.",
    )


def test_metadata(path: Path) -> None:
    made = document()
    made.body.append(odfdo.Paragraph("text"))
    made.meta.title, made.meta.creator, made.meta.subject, made.meta.keywords = "Report", "Ann", "Tests", "a b"
    second = odfdo.Element.from_tag("meta:keyword")
    second.text = "c"
    made.meta.get_meta_body().append(second)
    made.save(path)
    file = read(path)
    assert file.title == "Report"
    assert (file.metadata["author"], file.metadata["subject"], file.metadata["keywords"]) == ("Ann", "Tests", "a b, c")


def with_members(path: Path, members: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def test_encrypted(path: Path) -> None:
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
        'manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>'
    )
    with_members(path, {"META-INF/manifest.xml": manifest, "content.xml": "\x01\x02"})
    assert parse_file(path).reason == "needs a password"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}, "not an ODT: its type is "),
        ({"readme": "x"}, "not an ODT: it has no content.xml"),
        ({"content.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"}, "damaged: content.xml declares a document type"),
        ({"content.xml": "<a", "mimetype": "application/vnd.oasis.opendocument.text"}, "damaged: "),
    ],
)
def test_what_is_no_odt(path: Path, members: dict[str, str], reason: str) -> None:
    with_members(path, members)
    told = parse_file(path).reason
    assert told is not None
    assert told.startswith(reason)


def test_no_text(path: Path) -> None:
    document().save(path)
    assert parse_file(path).reason == "no text"
