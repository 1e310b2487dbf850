"""What a language model wrote is checked: its numbers against the passages it got, its quotes against their text."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from indexes.fulltext import query_terms
from lmk_rag.answering.context import Block
from lmk_rag.answering.records import Citation
from lmk_rag.answering.sentences import sentences_of

_LIST = r"\d+(?:\s*(?:[,;–-]|and)\s*\d+)*"  # noqa: RUF001 - "1", "1, 2", "1-3"
_NUMBERS = re.compile(rf"[ \t]*[\[【]\s*(?:passages?|sources?)?\s*({_LIST})\s*[\]】]", re.IGNORECASE)
_RANGE = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")  # noqa: RUF001
_QUOTED = re.compile(r'"((?:[^"\n]|\n(?!\s*\n)){2,})"|“((?:[^”\n]|\n(?!\s*\n)){2,})”|«((?:[^»\n]|\n(?!\s*\n)){2,})»')
_CLAIM_ENDS = re.compile(rf"(?<=[.!?])(?:\s*[\[【]{_LIST}[\]】])*\s+|\n+")
_MOST_DIGITS = 9  # of a number; a longer one is no citation of ours, and int() refuses very long ones
_FEWEST_QUOTED = 2  # words; a single one in quotation marks is a term, not a quote


def check(text: str, blocks: Sequence[Block]) -> tuple[str, list[Citation], list[str]]:
    """Resolve the citations of a model's answer by our own numbering, and look up what it quotes.

    A number that no passage has is taken out of the text. So is one whose passage shares no word with the statement
    that it stands behind: the statement then came from elsewhere.

    Args:
        text: as the model wrote it.
        blocks: the passages of its prompt.

    Returns:
        The text, its citations renumbered in the order in which they come; the citations, each with the sentence of
        its passage that is closest to the statement; notes, one sentence each.
    """
    numbered = {block.n: block for block in blocks}
    order: dict[int, int] = {}
    citations: list[Citation] = []
    unknown: list[str] = []
    unlike: list[str] = []

    def resolve(found: re.Match[str]) -> str:
        claim = _claim(text, found.start())
        kept = []
        for name, n in _named(found[1], numbered):
            if n is None:
                unknown.append(name)
            elif not _shared(claim, numbered[n].text):
                unlike.append(name)
            else:
                if n not in order:
                    order[n] = len(order) + 1
                    citations.append(_citation(order[n], numbered[n], claim))
                kept.append(f"[{order[n]}]")
        return (" " + "".join(kept)) if kept else ""

    checked = _NUMBERS.sub(resolve, text).strip()
    notes = [f"The model cited {_list(unknown)}, which it was not given: taken out."] if unknown else []
    if unlike:
        notes.append(f"The model cited {_list(unlike)} for words that do not stand there: taken out.")
    notes += [f"“{quote}” is quoted, but stands in no passage." for quote in _unknown_quotes(checked, blocks)]
    return checked, citations, notes


def _named(numbers: str, numbered: Mapping[int, Block]) -> Iterator[tuple[str, int | None]]:
    """List what a citation names, each with its passage; None where there is no such passage."""
    told = set()
    for first, last in _RANGE.findall(numbers):
        low, high = (int(each[:_MOST_DIGITS]) for each in (first, last or first))
        known: list[int | None] = [n for n in numbered if low <= n <= high and len(first) <= _MOST_DIGITS]
        for n in known or [None]:
            if (n or first) not in told:
                told.add(n or first)
                yield (f"[{n}]" if n else f"[{first[:_MOST_DIGITS]}]"), n


def _claim(text: str, position: int) -> str:
    """Give the statement that a citation at a position stands behind."""
    before = text[:position].rstrip()
    starts = [match.end() for match in _CLAIM_ENDS.finditer(before) if match.end() < len(before)]
    return _NUMBERS.sub("", before[starts[-1] if starts else 0 :])


def _citation(n: int, block: Block, claim: str) -> Citation:
    """Cite the sentence of a block that shares most with a claim."""
    start, end = max(
        sentences_of(block.text, 0, len(block.text)) or [(0, len(block.text))],
        key=lambda each: (_shared(claim, block.text[each[0] : each[1]]), -each[0]),
    )
    place = (block.page, block.start + start, block.start + end)
    return Citation(n, block.hit.id, block.hit.path, *place, block.text[start:end], block.hit.title)


def _shared(claim: str, text: str) -> int:
    """Count the words of a claim, stop words aside, that stand in a text."""
    return len(set(query_terms(claim)) & set(query_terms(text)))


def _unknown_quotes(text: str, blocks: Sequence[Block]) -> list[str]:
    """List what is quoted in an answer and stands in no passage, white space, brackets and case aside."""
    passages = [_plain(block.text) for block in blocks]
    quotes = (next(filter(None, groups)) for groups in _QUOTED.findall(text))
    return [quote for quote in dict.fromkeys(quotes) if _is_quote(quote) and not _in_any(quote, passages)]


def _is_quote(quote: str) -> bool:
    return len(quote.split()) >= _FEWEST_QUOTED


def _in_any(quote: str, passages: Iterable[str]) -> bool:
    """Whether all pieces of a quote, cut at its ellipses, stand in one passage."""
    pieces = [_plain(piece).strip(" .,;:!?") for piece in re.split(r"\.\.\.|…|\[\]|\(\)", quote)]
    return any(all(piece in passage for piece in pieces) for passage in passages)


_SAME = str.maketrans({"⟨": "<", "[": "(", "]": ")", "“": '"', "”": '"', "’": "'", "‘": "'"})  # noqa: RUF001


def _plain(text: str) -> str:
    return " ".join(text.translate(_SAME).split()).casefold()


def _list(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
