import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pypdf
import pytest
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject, StreamObject

from ingest.parsing import parse_file
from ingest.readers import ParsedFile, ReadError, open_file, pdf
from ingest.readers.pdf import ENGINES
from ingest.readers.pdf_fonts import mend


def read(path: Path) -> ParsedFile:
    parsed = parse_file(path)
    assert parsed.reason is None
    assert parsed.file is not None
    return parsed.file


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine alone."""
    name: str = request.param
    monkeypatch.setattr(pdf, "ENGINES", {name: ENGINES[name]})
    return name


def test_pages_keep_their_text_and_order(make_pdf: Any, engine: str) -> None:
    pages = [f"Page {number}\nof a document with three pages." for number in (1, 2, 3)]
    assert read(make_pdf(*pages)).pages == tuple(pages)


def test_pages_can_be_asked_for_in_any_order(make_pdf: Any, engine: str) -> None:
    opened = open_file(make_pdf("one", "two", "three"))
    assert opened.page_count == 3
    assert [opened.page(index).strip() for index in (2, 0, 1)] == ["three", "one", "two"]
    opened.close()


def test_a_page_without_text_keeps_its_number(make_pdf: Any, engine: str) -> None:
    assert read(make_pdf("one", "", "three")).pages == ("one", "", "three")


def test_metadata_and_title(make_pdf: Any, engine: str) -> None:
    file = read(make_pdf("text", title="A Real Title", author="Ann Author", subject="Things", keywords="a, b"))
    assert file.title == "A Real Title"
    assert (file.metadata["author"], file.metadata["subject"], file.metadata["keywords"]) == (
        "Ann Author",
        "Things",
        "a, b",
    )
    assert file.metadata["created"][:2] == "20"
    assert file.metadata["created"][10] == "T"


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - thesis.doc", "paper.dvi"])
def test_without_a_sensible_title_the_first_line_is_it(make_pdf: Any, title: str) -> None:
    assert read(make_pdf("On the Origin of Tests\nBy A. Author", title=title)).title == "On the Origin of Tests"


def test_without_any_title_the_name_of_the_file_is_it(make_pdf: Any) -> None:
    assert read(make_pdf("12.", name="my paper.pdf")).title == "my paper"


def test_broken_words_are_joined(make_pdf: Any, engine: str) -> None:
    assert read(make_pdf("A long senten-\nce is broken.")).pages == ("A long sentence is broken.",)
    assert read(make_pdf("The Anglo-\nSaxons came.")).pages == ("The Anglo-\nSaxons came.",)


def test_no_text_means_scanned(tmp_path: Path, engine: str) -> None:  # case 1
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    path = tmp_path / "scan.pdf"
    canvas = Canvas(str(path))
    for shade in (40, 90):
        canvas.drawImage(ImageReader(Image.new("L", (60, 80), shade)), 50, 50, 400, 600)
        canvas.showPage()
    canvas.save()
    parsed = parse_file(path)
    assert (parsed.file, parsed.reason) == (None, "no text (scanned?)")


def test_a_file_that_is_scanned_for_the_most_part_is_told(make_pdf: Any) -> None:
    assert read(make_pdf("Cover sheet", "", "", "")).warnings == ("3 of 4 pages have no text (scanned?)",)
    assert read(make_pdf("one", "", "three", "")).warnings == ()


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128", "AES-256"])
def test_encrypted_for_permissions_only(make_pdf: Any, tmp_path: Path, engine: str, algorithm: str) -> None:  # case 2
    path = encrypted(make_pdf("Readable by all", title="Open to All"), "", algorithm)
    file = read(path)
    assert (file.pages, file.title) == (("Readable by all",), "Open to All")


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_encrypted_with_a_password(make_pdf: Any, engine: str, algorithm: str) -> None:
    assert parse_file(encrypted(make_pdf("Secret"), "secret", algorithm)).reason == "needs a password"


def encrypted(path: Path, password: str, algorithm: str) -> Path:
    writer = pypdf.PdfWriter(clone_from=path)
    writer.encrypt(password, owner_password="owner", algorithm=algorithm)
    writer.write(path)
    return path


@pytest.mark.parametrize("data", [b"", b"\0 \n" * 50, b"this is no PDF", b"%PDF-1.7\nbut nothing follows"])
def test_what_is_no_pdf(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pdf").write_bytes(data)
    reason = parse_file(tmp_path / "a.pdf").reason
    assert reason is not None
    assert reason.startswith("not a PDF: ")


def test_a_file_cut_off_is_read_as_far_as_it_goes_or_refused(make_pdf: Any) -> None:
    path = make_pdf(*[f"Page {number}" for number in range(20)])
    path.write_bytes(path.read_bytes()[:-400])
    parsed = parse_file(path)
    assert (parsed.file is None) != (parsed.reason is None)


def test_a_page_that_inflates_to_gigabytes_is_left_out(make_pdf: Any, engine: str) -> None:  # case 5
    path = make_pdf("one", "two", "three")
    writer = pypdf.PdfWriter(clone_from=path)
    stream = StreamObject()
    stream._data = bomb(3 << 30)
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    writer.pages[1][NameObject("/Contents")] = writer._add_object(stream)
    writer.write(path)
    from ingest.parsing import parse_files

    (parsed,) = parse_files([path], workers=1, memory_bytes=1 << 30)
    assert parsed.file is not None
    assert parsed.file.pages == ("one", "", "three")


def bomb(size: int) -> bytes:
    """A zlib stream that inflates to `size` blanks, made of one block over and over; its checksum is wrong."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    length = 16 << 20
    block = packer.compress(b" " * length) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + block * (size // length) + b"\x03\x00" + bytes(4)


def font_pdf(
    path: Path,
    codes: bytes,
    names: Sequence[tuple[int, str]],
    unicode_map: Sequence[tuple[int, str]] | None,
    subtype: str = "/Type1",
) -> Path:
    """A PDF of one page and one font, with the given glyph names and ToUnicode map (code, UTF-16 in hexadecimal)."""
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(300, 200)
    differences = ArrayObject()
    for code, name in names:
        differences += [NumberObject(code), NameObject(name)]
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject(subtype),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
            NameObject("/Encoding"): DictionaryObject(
                {
                    NameObject("/Type"): NameObject("/Encoding"),
                    NameObject("/BaseEncoding"): NameObject("/WinAnsiEncoding"),
                    NameObject("/Differences"): differences,
                }
            ),
        }
    )
    if unicode_map is not None:
        entries = "".join(f"<{code:02x}> <{target}>\n" for code, target in unicode_map)
        font[NameObject("/ToUnicode")] = writer._add_object(
            stream_of(
                "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def\n"
                "1 begincodespacerange <00> <ff> endcodespacerange\n"
                f"{len(unicode_map)} beginbfchar\n{entries}endbfchar\nendcmap end end"
            )
        )
    page[NameObject("/Resources")] = DictionaryObject(
        {NameObject("/Font"): DictionaryObject({NameObject("/F1"): writer._add_object(font)})}
    )
    page[NameObject("/Contents")] = writer._add_object(stream_of(f"BT /F1 12 Tf 20 100 Td <{codes.hex()}> Tj ET"))
    writer.write(path)
    return path


def stream_of(text: str) -> StreamObject:
    stream = StreamObject()
    stream.set_data(text.encode())
    return stream


ASCII = [(code, f"{code:04x}") for code in range(32, 127)]
TO_NUL = [*ASCII, (1, "0000"), (2, "0000"), (3, "0000")]
TO_PRIVATE = [*ASCII, (1, "F001"), (2, "E003"), (3, "f6be")]
SIMPLE = [(1, "/ffi"), (2, "/ff"), (3, "/fi")]
IN_PARTS = [(1, "/f_f_i"), (2, "/f_f"), (3, "/f_i.alt")]
IN_HEXADECIMAL = [(1, "/uniFB03"), (2, "/u0066_u0066"), (3, "/uniFB01")]


@pytest.mark.parametrize("unicode_map", [TO_NUL, TO_PRIVATE, ASCII, None], ids=["nul", "private", "part", "none"])
@pytest.mark.parametrize("names", [SIMPLE, IN_PARTS, IN_HEXADECIMAL], ids=["simple", "parts", "hexadecimal"])
def test_ligatures_are_restored_from_the_font(
    tmp_path: Path, engine: str, names: list[tuple[int, str]], unicode_map: list[tuple[int, str]] | None
) -> None:  # case 3
    path = font_pdf(tmp_path / "a.pdf", b"di\x01cult o\x02er \x03gure", names, unicode_map)
    file = read(path)
    assert file.pages == ("difficult offer figure",)
    assert file.warnings == ()


def test_a_ligature_at_code_nought(tmp_path: Path, engine: str) -> None:
    path = font_pdf(tmp_path / "a.pdf", b"di\x00cult", [(0, "/ffi")], [*ASCII, (0, "0000")])
    assert read(path).pages == ("difficult",)


def test_glyphs_of_unknown_names_are_counted_and_never_kept(tmp_path: Path, engine: str) -> None:  # case 3
    path = font_pdf(tmp_path / "a.pdf", b"di\x01cult o\x02er", [(1, "/g17"), (2, "/g18")], TO_NUL)
    file = read(path)
    assert file.pages == ("dicult oer",)
    assert file.warnings == ("2 NUL characters were left out",)


def test_digits_and_small_capitals_by_their_names(tmp_path: Path, engine: str) -> None:
    names = [(1, "/one.taboldstyle"), (2, "/zero.oldstyle"), (3, "/a.sc")]
    assert read(font_pdf(tmp_path / "a.pdf", b"\x01\x02 \x03b", names, None)).pages == ("10 ab",)


def test_bitmap_fonts_of_tex() -> None:
    """dvips names the glyphs of a Type 3 font by their codes; the ligatures stand where TeX's encodings have them."""
    font = bitmap_font(b"\x0b\x0c\x1eabcdefgh")
    assert mend(font)
    written = font["/ToUnicode"]
    assert isinstance(written, StreamObject)
    entries = written.get_data().decode().split("beginbfchar\n")[1].split("endbfchar")[0]
    assert sorted(entries.splitlines()) == ["<0b> <00660066>", "<0c> <00660069>", "<1e> <006600660069>"]
    assert not mend(font)


def test_other_bitmap_fonts_are_left_alone() -> None:
    assert not mend(bitmap_font(b"\x0b\x0cxyz"))  # a mathematical alphabet
    assert not mend(bitmap_font(b"\x0b\x0cabcdefgh", {0x0B: "/a77"}))  # its own names


def bitmap_font(codes: bytes, names: Mapping[int, str] | None = None) -> DictionaryObject:
    differences = ArrayObject()
    for code in codes:
        differences += [NumberObject(code), NameObject((names or {}).get(code, f"/a{code}"))]
    return DictionaryObject(
        {
            NameObject("/Subtype"): NameObject("/Type3"),
            NameObject("/Encoding"): DictionaryObject({NameObject("/Differences"): differences}),
        }
    )


def test_lone_surrogates_of_a_font(tmp_path: Path, engine: str) -> None:  # case 4
    path = font_pdf(
        tmp_path / "a.pdf", b"a\x01b\x02c", [(1, "/g1"), (2, "/g2")], [*ASCII, (1, "D83DDE00"), (2, "D83D")]
    )
    file = read(path)
    assert file.pages == ("a\N{GRINNING FACE}b\ufffdc",)
    assert file.warnings == ("1 lone surrogate was replaced by U+FFFD",)


def test_the_second_engine_is_used_where_the_first_fails(make_pdf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ENGINES

    def broken(path: Path) -> Any:
        raise ReadError("damaged: as ordered")

    monkeypatch.setattr(pdf, "ENGINES", {first: broken, second: ENGINES[second]})
    path = make_pdf("text")
    assert read(path).pages == ("text",)
    monkeypatch.setattr(pdf, "ENGINES", {first: broken, second: broken})
    assert parse_file(path).reason == "damaged: as ordered"


def test_pypdf_says_nothing(make_pdf: Any) -> None:
    path = make_pdf("text")
    path.write_bytes(path.read_bytes().replace(b"startxref\n", b"startxref\n7"))
    code = (
        "import sys; from pathlib import Path; from ingest.readers import pdf; pdf.ENGINES['pypdf'](Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_files_are_closed(make_pdf: Any, engine: str) -> None:
    path = make_pdf("text")
    read(path)
    path.write_bytes(b"now it is something else")
    path.unlink()
