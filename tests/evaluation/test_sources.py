"""RFCs and manuals: what is text, what is a query, and which split it belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmk_rag.evaluation.sources.manuals import pages, sections, without_front
from lmk_rag.evaluation.sources.markup import Manual, parse_html
from lmk_rag.evaluation.sources.rfc import Rfc, Section, parse_rfc, read_rfcs
from lmk_rag.evaluation.sources.splits import select, split_of_number

PAGE_END = "Doe                     Standards Track                    [Page 1]"
PAGE_START = "RFC 7000                   Winding Tape                  April 2015"
TEXT = f"""

Internet Engineering Task Force (IETF)                           J. Doe
Request for Comments: 7000

                       Winding Tape Onto Reels

Abstract

   How to wind a tape onto a reel.

Status of This Memo

   This is a memo.

Table of Contents

   1.  Introduction  . . . . . . . . . . . . . . . . . . . . . . . .   2
   2.  Winding . . . . . . . . . . . . . . . . . . . . . . . . . . .   3
     2.1.  Tension of the Tape . . . . . . . . . . . . . . . . . . .   3

1.  Introduction

   A tape is long, and a reel



{PAGE_END}
\f
{PAGE_START}


   is round.

2.  Winding

   Turn slowly.

2.1.  Tension of the Tape

   1. Not a heading, as text follows at once
   and goes on.

   Not too tight.

Appendix A.  Older Reels

   They were smaller.
"""
ABOUT = {
    "title": "Winding Tape\r\nOnto Reels",
    "abstract": "How to wind\r\na tape.",
    "obsoletes": ["RFC6999"],
    "updated_by": ["RFC8123", "RFC7000"],
}


def test_body_of_an_rfc_is_its_sections() -> None:
    rfc = parse_rfc(7000, TEXT, dict(ABOUT))

    assert rfc is not None
    assert [part.heading for part in rfc.sections] == [
        "Introduction",
        "Winding",
        "Tension of the Tape",
        "Older Reels",
    ]
    assert rfc.sections[0].text.split() == ["A", "tape", "is", "long,", "and", "a", "reel", "is", "round."]
    assert rfc.body.startswith("Introduction\n\nA tape is long")
    for gone in ("Abstract", "Winding Tape Onto Reels", "[Page", "April 2015", ". . .", "Status of This Memo"):
        assert gone not in rfc.body
    assert rfc.title == "Winding Tape Onto Reels"
    assert rfc.abstract == "How to wind a tape."
    assert rfc.related == {6999, 8123}


def test_a_text_without_sections_is_left_out() -> None:
    assert parse_rfc(1, "Just a letter.\n\nYours.\n", {}) is None


def test_each_rfc_is_read_once(tmp_path: Path) -> None:
    import gzip
    import json

    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rfc7000.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
        (tmp_path / folder / "rfc7000.json").write_text(json.dumps(ABOUT))
    (tmp_path / "a" / "rfc12.txt.gz").write_bytes(gzip.compress(TEXT.encode()))  # no entry in the index

    assert [rfc.number for rfc in read_rfcs([tmp_path])] == [7000]


@pytest.mark.parametrize(
    ("number", "split"),
    [
        (1, "train"),
        (149, "train"),
        (150, "test"),  # 150 // 50 = 3
        (199, "test"),
        (200, "train"),
        (250, "dev"),  # 250 // 50 = 5
        (299, "dev"),
        (300, "train"),
        (500, "test"),  # 500 // 50 = 10, 10 % 7 = 3
        (8550, "test"),  # 8550 // 50 = 171 = 24 * 7 + 3
        (8650, "dev"),  # 8650 // 50 = 173 = 24 * 7 + 5
    ],
)
def test_splits_by_number(number: int, split: str) -> None:
    assert split_of_number(number) == split


def rfc(number: int, related: frozenset[int] = frozenset(), abstract: str = "x") -> Rfc:
    return Rfc(number=number, title="t", abstract=abstract, sections=(Section(heading="h", text="t"),), related=related)


def test_relatives_of_test_rfcs_are_dropped_from_training_and_development() -> None:
    rfcs = [
        rfc(10),
        rfc(20, frozenset({160})),  # says that it obsoletes a test RFC
        rfc(30),  # a test RFC says that it is updated by this one
        rfc(160),
        rfc(170, frozenset({30, 260})),
        rfc(260),
        rfc(270, frozenset({10})),  # a relative in training is no matter
    ]

    assert [each.number for each in select(rfcs, "train")] == [10]
    assert [each.number for each in select(rfcs, "dev")] == [270]
    assert [each.number for each in select(rfcs, "test", full=True)] == [160, 170]


def test_the_test_split_is_a_fixed_draw_of_500() -> None:
    rfcs = [rfc(number, abstract="" if number % 10 == 0 else "x") for number in range(9000)]

    drawn = [each.number for each in select(rfcs, "test")]

    assert len(drawn) == len(set(drawn)) == 500
    assert drawn == sorted(drawn) == [each.number for each in select(rfcs[::-1][::-1], "test")]
    assert all(split_of_number(number) == "test" and number % 10 for number in drawn)
    assert len(select(rfcs, "test", full=True)) > 1200


HTML = """<html><head><title>x</title><style>p{}</style></head><body><nav>menu</nav>
<div class="body"><h1>3.2. Reels &amp; tapes<a class="headerlink" href="#">¶</a></h1>
<p>Short.</p><p>This first long paragraph says, in rather more than fifteen words, what the whole page is
about.</p><h2>Winding</h2><ul><li>slow</li><li>fast</li></ul><pre>a  = 1
b = 2</pre></div><footer>end</footer></body></html>"""


def test_html_is_cut_at_its_headings() -> None:
    manual = parse_html(HTML)

    assert manual is not None
    assert manual.title == "Reels & tapes"
    assert [part.heading for part in manual.sections] == ["Reels & tapes", "Winding"]
    assert manual.sections[1].text == "slow\n\nfast\n\na  = 1\nb = 2"
    assert "menu" not in manual.text
    assert "end" not in manual.text


def test_front_matter_of_a_manual_is_taken_out() -> None:
    manual = parse_html(HTML)
    assert manual is not None

    abstract, parts = without_front(manual)

    assert abstract.startswith("This first long paragraph says")
    assert Manual(title="", sections=parts).text.startswith("Short.\n\nWinding")
    assert "first long paragraph" not in Manual(title="", sections=parts).text


def made(number: int) -> tuple[str, Manual]:
    long = " ".join(f"word{number}" for _ in range(70))
    parts = (
        Section(heading=f"Page {number}", text=f"Short.\n\n{'abstract ' * 20}{number}\n\n{long}"),
        Section(heading=f"Unique heading {number}", text=long),
        Section(heading="See also", text=long),
    )
    return f"p{number}", Manual(title=f"Page {number}", sections=parts)


def test_pages_are_asked_for_by_title_abstract_and_a_heading_of_their_own() -> None:
    dataset = pages("manual", [made(1), made(2)])

    assert set(dataset.corpus) == {"p1", "p2"}
    assert dataset.queries["p1-title"] == "Page 1"
    assert dataset.queries["p1-heading"] == "Unique heading 1"
    assert dataset.queries["p1-abstract"].startswith("abstract abstract")
    assert dataset.qrels["p2-title"] == {"p2": 1}
    assert "Page 1" not in dataset.corpus["p1"]
    assert "abstract" not in dataset.corpus["p1"]


def test_sections_are_asked_for_by_their_heading_which_is_not_in_them() -> None:
    dataset = sections("manual", [made(1), made(2)])

    assert dataset.queries["p1-1-heading"] == "Unique heading 1"
    assert "See also" not in dataset.queries.values()
    assert "Unique heading" not in dataset.corpus["p1-1"]
    assert set(dataset.kinds.values()) == {"heading"}


def test_a_limit_draws_the_same_pages_every_time() -> None:
    manuals = [made(number) for number in range(30)]

    assert set(pages("manual", manuals, limit=5).corpus) == set(pages("manual", manuals, limit=5).corpus)
    assert len(pages("manual", manuals, limit=5).corpus) == 5
