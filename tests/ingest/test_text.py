import codecs
import gzip
import pydoc
from pathlib import Path

import pytest

from ingest.parsing import parse_file
from ingest.readers import ParsedFile, ReadError
from ingest.readers.decoding import decode
from ingest.readers.text import split_front_matter


def read(path: Path) -> ParsedFile:
    parsed = parse_file(path)
    assert parsed.reason is None
    assert parsed.file is not None
    return parsed.file


def write(folder: Path, data: str | bytes, name: str = "a.txt") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_text_is_kept_as_it_stands(tmp_path: Path) -> None:
    text = pydoc.render_doc(codecs, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    file = read(write(tmp_path, text))
    assert file == ParsedFile(kind="text", title="Python Library Documentation: module codecs", pages=(text,))


def test_form_feeds_part_pages(tmp_path: Path) -> None:
    file = read(write(tmp_path, "first page\n\n\f\nsecond page\n\f\n\f\nfourth\n\f\n"))
    assert file.pages == ("first page", "second page", "", "fourth")


def test_a_text_without_form_feeds_is_one_page(tmp_path: Path) -> None:
    assert read(write(tmp_path, "  one\r\n\r\ntwo\n")).pages == ("  one\n\ntwo\n",)


@pytest.mark.parametrize(
    "data",
    [
        "naïve — 東京".encode(),
        codecs.BOM_UTF8 + "naïve — 東京".encode(),
        "naïve — 東京".encode("utf-16"),
        codecs.BOM_UTF16_BE + "naïve — 東京".encode("utf-16-be"),
        "naïve — 東京".encode("utf-32"),
    ],
)
def test_unicode_encodings(data: bytes) -> None:
    assert decode(data) == ("naïve — 東京", ())


def test_another_encoding_is_guessed_and_told(tmp_path: Path) -> None:
    text = "Das Gerät läßt sich über die Öffnung prüfen; größere Änderungen müssen gemeldet werden. " * 5
    file = read(write(tmp_path, text.encode("cp1252")))
    assert file.pages == (text,)
    assert len(file.warnings) == 1
    assert file.warnings[0].startswith("not UTF-8: read as ")


def test_damaged_utf_16_is_told() -> None:
    text, warnings = decode(codecs.BOM_UTF16_LE + "abc".encode("utf-16-le") + b"x")
    assert text == "abc\ufffd"
    assert warnings == ("damaged UTF-16: bytes that are none were replaced by U+FFFD",)


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
        bytes(1000),
        b"\x7fELF\x02\x01\x01" + bytes(100) + b"\xff" * 50,
        "text".encode("utf-16-le") * 50,
    ],
)
def test_a_binary_file_is_refused(data: bytes) -> None:
    with pytest.raises(ReadError, match=r"^not text: the file is binary$"):
        decode(data)


def test_nuls_and_surrogates_in_a_text(tmp_path: Path) -> None:  # cases 3 and 4
    file = read(write(tmp_path, b"be\0fore \xed\xa0\xbd\xed\xb8\x80 and \xed\xa0\xbd alone"))
    assert file.pages == ("before \N{GRINNING FACE} and \ufffd alone",)
    assert file.warnings == ("1 NUL character was left out", "1 lone surrogate was replaced by U+FFFD")


@pytest.mark.parametrize("data", ["", " \n\t\n", "\f\f", "---\n***\n"])
def test_no_text(tmp_path: Path, data: str) -> None:
    parsed = parse_file(write(tmp_path, data))
    assert (parsed.file, parsed.reason) == (None, "no text")


def test_gzip(tmp_path: Path) -> None:
    file = read(write(tmp_path, gzip.compress("Ein Text über Öl\n".encode()), "some.notes.txt.gz"))
    assert (file.kind, file.pages, file.title) == ("text", ("Ein Text über Öl\n",), "Ein Text über Öl")
    assert read(write(tmp_path, gzip.compress(b"# Head\n\ntext."), "b.md.gz")).title == "Head"
    assert read(write(tmp_path, gzip.compress(b"<p>one<p>two"), "c.html.gz")).pages == ("one\n\ntwo",)


@pytest.mark.parametrize("data", [b"not gzip at all", gzip.compress(b"x" * 9999)[:-12]])
def test_damaged_gzip(tmp_path: Path, data: bytes) -> None:
    reason = parse_file(write(tmp_path, data, "a.txt.gz")).reason
    assert reason is not None
    assert reason.startswith("damaged: ")


def test_title_of_a_text_without_one_is_its_name(tmp_path: Path) -> None:
    assert read(write(tmp_path, "Just a sentence.\n", "my notes.txt")).title == "my notes"
    assert read(write(tmp_path, gzip.compress(b"Just a sentence.\n"), "rfc1.txt.gz")).title == "rfc1"
    assert read(write(tmp_path, "Just a sentence.\n", "1706.03762.v2.TXT")).title == "1706.03762.v2"


def test_restructured_text_is_text(tmp_path: Path) -> None:
    source = "Some words.\n\nThe Title\n=========\n\n* item\n"
    file = read(write(tmp_path, source, "a.rst"))
    assert (file.kind, file.title, file.pages) == ("text", "The Title", (source,))


MARKDOWN = """---
title: "The: Title"
author: Ann Author # a comment
tags: [one, 'two']
list:
- a
- b
nested:
  key: value
---

# A heading

Some *text*.
"""


def test_markdown_keeps_its_marks_and_front_matter_goes_to_the_metadata(tmp_path: Path) -> None:
    file = read(write(tmp_path, MARKDOWN, "a.md"))
    assert file.kind == "markdown"
    assert file.pages == ("# A heading\n\nSome *text*.\n",)
    assert file.title == "The: Title"
    assert file.metadata == {"author": "Ann Author", "tags": ["one", "two"], "list": ["a", "b"]}


@pytest.mark.parametrize("text", ["# only a heading\n", "---\nno end of it\n", "text\n---\na: b\n---\n"])
def test_what_is_no_front_matter_stays(text: str) -> None:
    assert split_front_matter(text) == ({}, text)


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("text\n\n## A heading ##\n", "A heading"),
        ("```\n# a comment\n```\n# Heading\n", "Heading"),
        ("~~~~\n# a\n~~~\n# b\n~~~~\n# Heading\n", "Heading"),
        ("Heading\n-------\n", "Heading"),
        ("#hash tag\n\n# Heading\n", "Heading"),
    ],
)
def test_title_of_markdown_is_its_first_heading(tmp_path: Path, source: str, title: str) -> None:
    assert read(write(tmp_path, source, "a.markdown")).title == title
