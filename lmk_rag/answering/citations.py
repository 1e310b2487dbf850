"""What a language model wrote is checked: its numbers against the passages it got, its quotes against their text."""

import re
from collections.abc import Iterable, Sequence

from indexes.fulltext import query_terms
from lmk_rag.answering.context import Block
from lmk_rag.answering.records import Citation
from lmk_rag.answering.sentences import sentences_of

_NUMBERS = re.compile(r"[ \t]*\[\s*(\d+(?:\s*[,;]\s*\d+)*)\s*\]")
_QUOTED = re.compile(r'"([^"\n]{2,})"|“([^”\n]{2,})”|«([^»\n]{2,})»')
_CLAIM_ENDS = re.compile(r"(?<=[.!?])(?:\s*\[[\d\s,;]+\])*\s+|\n+")
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
    unknown: list[int] = []
    unlike: list[int] = []

    def resolve(found: re.Match[str]) -> str:
        claim = _claim(text, found.start())
        kept = []
        for n in dict.fromkeys(int(number) for number in re.findall(r"\d+", found[1])):
            if n not in numbered:
                unknown.append(n)
            elif not _shared(claim, numbered[n].text):
                unlike.append(n)
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


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(f"[{n}]" for n in dict.fromkeys(numbers))
