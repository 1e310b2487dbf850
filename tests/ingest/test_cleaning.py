import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.cleaning import (
    Counts,
    clean,
    fold_ligatures,
    has_text,
    join_line_end_hyphens,
    join_surrogates,
    total,
    without_terminal_codes,
)


def test_clean_leaves_ordinary_text_alone() -> None:
    text = "Straße, naïve café — 東京\tcolumn\n\n  indented 😀\n"
    assert clean(text).text == text
    assert clean(text).counts == Counts()


def test_nuls_are_counted_and_never_kept() -> None:  # case 3
    cleaned = clean("a\0b\0\0c")
    assert (cleaned.text, cleaned.counts) == ("abc", Counts(nuls=3))
    assert cleaned.counts.warnings() == ("3 NUL characters were left out",)


def test_surrogate_pairs_are_joined_and_lone_ones_replaced() -> None:  # case 4
    cleaned = clean("\ud83d\ude00 and \ud83d alone, \ude00 too")
    assert cleaned.text == "\N{GRINNING FACE} and \ufffd alone, \ufffd too"
    assert cleaned.counts == Counts(surrogates=2)
    assert cleaned.counts.warnings() == ("2 lone surrogates were replaced by U+FFFD",)
    cleaned.text.encode()


def test_joining_surrogates_keeps_characters_beyond_the_first_plane() -> None:
    assert join_surrogates("\ud800\U0001f600") == ("\ufffd\U0001f600", 1)


def test_control_characters_are_left_out_but_tab_and_newline() -> None:
    every_c0 = "".join(map(chr, range(1, 32)))
    # VT, FF and CR end lines.
    assert clean(f"a{every_c0}b\x7f\x80\ufffe").text == "a\t\n\n\n\nb"


def test_one_loss_is_told_in_the_singular() -> None:
    assert clean("\0").counts.warnings() == ("1 NUL character was left out",)


def test_terminal_codes() -> None:
    import pydoc

    rendered = pydoc.render_doc(json)  # bold by overstriking
    assert "\b" in rendered
    assert without_terminal_codes(rendered) == pydoc.plain(rendered)
    assert without_terminal_codes("\x1b[1;31mred\x1b[0m [x]") == "red [x]"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_every_line_end_becomes_a_newline(end: str) -> None:
    assert clean(f"one{end}two").text == "one\ntwo"


def test_ligatures_are_folded_to_letters() -> None:
    assert fold_ligatures("\ufb00 \ufb01 \ufb02 \ufb03 \ufb04 \ufb05 \ufb06") == "ff fi fl ffi ffl st st"
    assert clean("di\ufb03cult").text == "difficult"


def test_soft_hyphens_go_and_what_they_parted_is_joined() -> None:
    assert clean("hy\u00adphen\u00ad\n  ation").text == "hyphenation"


def test_composed_form() -> None:
    assert clean("e\u0301").text == "\u00e9"


@pytest.mark.parametrize(
    ("broken", "joined"),
    [
        ("a senten-\nce goes", "a sentence goes"),
        ("a senten- \n  ce goes", "a sentence goes"),
        ("sche\u2010\nma", "schema"),
        ("Anglo-\nSaxon", "Anglo-\nSaxon"),  # a name, not a broken word
        ("in 1990-\nthe", "in 1990-\nthe"),
        ("a list -\nitem", "a list -\nitem"),
        ("option --\nname", "option --\nname"),
        ("WELL-\nKNOWN", "WELL-\nKNOWN"),
        ("über-\nall", "überall"),
        # The same text writes the compound inside a line elsewhere.
        ("a well-known rule, so well-\nknown that", "a well-known rule, so well-known that"),
    ],
)
def test_words_broken_over_two_lines(broken: str, joined: str) -> None:
    assert join_line_end_hyphens(broken) == joined


def test_broken_words_are_joined_only_where_asked() -> None:
    assert clean("one-\ntwo").text == "one-\ntwo"
    assert clean("one-\ntwo", join_hyphenated=True).text == "onetwo"


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_can_be_stored_and_is_its_own_clean_form(text: str) -> None:
    cleaned = clean(text, join_hyphenated=True).text
    cleaned.encode("utf-8")
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not any(unicodedata.category(character) == "Cc" for character in cleaned if character not in "\t\n")
    assert clean(cleaned).text == cleaned


def test_counts_add_up() -> None:
    assert total([Counts(1, 2), Counts(10, 20)]) == Counts(11, 22)
    assert total([]) == Counts()


@pytest.mark.parametrize(
    ("text", "expected"), [("", False), (" \n\t", False), ("...—\ufffd", False), ("é", True), ("7", True)]
)
def test_has_text(text: str, expected: bool) -> None:
    assert has_text(text) is expected
