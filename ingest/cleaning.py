"""What every text goes through before it is kept: pure functions that count what they changed."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import astuple, dataclass

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# C0 and C1 without tab and newline, DEL, and the two noncharacters that extraction tools use as their own marks.
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_TERMINAL = re.compile("\x1b\\[[0-9;]*[A-Za-z]|.\x08")
_SOFT_HYPHEN = re.compile("\u00ad(?:[ \t]*\n[ \t]*)?")
_LINE_END_HYPHEN = re.compile(r"([^\W\d_])[-\u2010][ \t]*\n[ \t]*([^\W\d_])")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many characters were left out or replaced.

    Attributes:
        nuls: NUL characters left out.
        surrogates: Lone surrogates replaced by U+FFFD.
    """

    nuls: int = 0
    surrogates: int = 0

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind of loss; empty where nothing was lost."""
        found = []
        if self.nuls:
            found.append(f"{_count(self.nuls, 'NUL character')} left out")
        if self.surrogates:
            found.append(f"{_count(self.surrogates, 'lone surrogate')} replaced by U+FFFD")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A clean text and what was lost on the way."""

    text: str
    counts: Counts


def clean(text: str, *, join_hyphenated: bool = False) -> Cleaned:
    r"""Give the text as it may be kept: valid Unicode in NFC, line ends as ``\n``, no control characters.

    Args:
        text: Anything a parser gave, lone surrogates included.
        join_hyphenated: Whether a word broken over two lines is made whole, as text set in columns needs it.

    Returns:
        The text, which has no NUL, no surrogate, no control character but tab and newline and no Latin
        ligature character, and the counts of what was left out or replaced.
    """
    text, surrogates = join_surrogates(text)
    text = _LINE_ENDS.sub("\n", text)
    nuls = text.count("\0")
    text = _CONTROL.sub("", text)
    text = _SOFT_HYPHEN.sub("", fold_ligatures(text))
    if join_hyphenated:
        text = join_line_end_hyphens(text)
    return Cleaned(unicodedata.normalize("NFC", text), Counts(nuls, surrogates))


def join_surrogates(text: str) -> tuple[str, int]:
    """Make one character of each surrogate pair; replace lone surrogates by U+FFFD and count them."""
    if not _SURROGATE.search(text):
        return text, 0
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.subn("\ufffd", joined)


def without_terminal_codes(text: str) -> str:
    r"""Undo what is meant for a terminal or printer: overstruck characters (``N\bN`` for bold) and ANSI colours."""
    return _TERMINAL.sub("", text)


def fold_ligatures(text: str) -> str:
    """Write the Latin ligature characters U+FB00 to U+FB06 as the letters they stand for."""
    return text.translate(_LIGATURES)


def join_line_end_hyphens(text: str) -> str:
    """Join a word broken over two lines: lower-case letter, hyphen, line end, lower-case letter.

    A hyphen that the same text also writes inside a line (``well-known``) is kept.
    """
    return _LINE_END_HYPHEN.sub(lambda match: _joined(match, text), text)


def _joined(match: re.Match[str], text: str) -> str:
    before, after = match.groups()
    if not (before.islower() and after.islower()):
        return match.group()
    head = re.search(r"[^\W\d_]*$", text[max(0, match.start() - 40) : match.start() + 1])
    tail = re.match(r"[^\W\d_]*", text[match.end() - 1 : match.end() + 40])
    compound = f"{head.group() if head else ''}-{tail.group() if tail else ''}"
    hyphen = "-" if compound in text else ""
    return f"{before}{hyphen}{after}"


def total(counts: Iterable[Counts]) -> Counts:
    """Add up the counts of several pages."""
    sums = [sum(column) for column in zip(*map(astuple, counts), strict=True)]
    return Counts(*sums)


def has_text(text: str) -> bool:
    """Tell whether there is a letter or a digit in it."""
    return any(map(str.isalnum, text))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun} was" if number == 1 else f"{number} {noun}s were"
