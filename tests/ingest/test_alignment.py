"""Pieces of a cleaned text found again in the raw text, against cleaning itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.alignment import find_ranges
from ingest.cleaning import clean


def found(raw: str, piece: str) -> list[str]:
    """The raw characters found for a piece of what cleaning makes of them."""
    cleaned = clean(raw, join_hyphenated=True).text
    start = cleaned.index(piece)
    return [raw[first:last] for first, last in find_ranges(cleaned, raw, start, start + len(piece))]


@pytest.mark.parametrize(
    ("raw", "piece", "expected"),
    [
        ("The tide comes in.", "tide comes", "tide comes"),
        ("The con-\nsequence is clear.", "consequence is", "con-\nsequence is"),
        ("An e\ufb03cient o\ufb03ce here", "efficient office", "e\ufb03cient o\ufb03ce"),
        ("Caf\u0065\u0301 ol\u00e9", "Caf\u00e9 ol\u00e9", "Caf\u0065\u0301 ol\u00e9"),
        ("a\0b\x02c  wide\r\n  gap", "wide\n  gap", "wide\r\n  gap"),
        ("so\u00adft hy\ufffephen", "soft hyphen", "so\u00adft hy\ufffephen"),
    ],
)
def test_what_cleaning_changes_is_found_again(raw: str, piece: str, expected: str) -> None:
    assert found(raw, piece) == [expected]


def test_of_two_equal_pieces_the_nearer_one_is_taken() -> None:
    raw = "again and \ue000again and \ue000again and again"
    cleaned = raw.replace("\ue000", "x")  # texts that are not equal, so that the piece has to be looked for
    start = cleaned.rindex("and")
    assert find_ranges(cleaned, raw, start, start + 3) == [(start, start + 3)]
    start = cleaned.index("and")
    assert find_ranges(cleaned, raw, start, start + 3) == [(start, start + 3)]


def test_a_piece_of_another_engine_is_found_by_what_both_have() -> None:
    raw = "Formula alpha equals the sum of all the weights in the row of the table."
    cleaned = "Formula \u03b1 equals the sum of all the wei ghts in the r\u00a7w of the table."
    [(first, last)] = find_ranges(cleaned, raw, cleaned.index("equals"), cleaned.index("of the"))
    assert raw[first:last].startswith("equals the sum")
    assert raw[first:last].endswith("weights in the r")  # what a run of one letter says is noise


def test_what_is_not_there_is_not_found() -> None:
    assert find_ranges("something else altogether", "no such words on this page", 0, 25) == []


@pytest.mark.parametrize(("cleaned", "raw", "start", "end"), [("", "", 0, 0), ("a b", "a b", 1, 2), ("abc", "", 0, 3)])
def test_nothing_is_found_for_nothing(cleaned: str, raw: str, start: int, end: int) -> None:
    assert find_ranges(cleaned, raw, start, end) == []


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_ranges_lie_inside_the_raw_text(raw: str, start: int, end: int) -> None:
    cleaned = clean(raw, join_hyphenated=True).text
    ranges = find_ranges(cleaned, raw, min(start, end), max(start, end))
    assert ranges == sorted(ranges)
    assert all(0 <= first < last <= len(raw) for first, last in ranges)
