"""A user's query: its words and phrases, and the parts of its identifiers."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

# What unicode61 takes for a word: letters and digits, with the marks that it folds away; "_" separates.
_WORD = re.compile(r"[^\W_][^\W_\u0300-\u036f]*(?:[\u0300-\u036f]+[^\W_]*)*")
_PIECE = re.compile(r'"([^"]*)"|([^\s"]+)')
# Where an identifier falls apart: letters from digits, "threadPool", "HTTPServer"; "PDFs" and "IPv" do not.
_PART = re.compile(r"\d+|[A-Z]{2,}[a-z]?(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+")
# Scripts that write no spaces; they are indexed by character.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
# A character at which a word falls apart. The plain class in front lets the search skip over most of a text.
_BREAK = re.compile(
    rf"[\dA-Z{_UNSPACED}](?:(?<=[^\W\d_]\d)|(?<=\d)(?=[^\W\d_])|(?<=[a-z][A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{{2}})"
    rf"|(?<=[{_UNSPACED}]))"
)
_RUN = re.compile(r"[^\W_]*")
_LONGEST_PHRASE = 32  # words; a longer one is cut
_QUOTED = re.compile(r'"[^"]*"')

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been before being below
    between both but by can cannot could couldn did didn do does doesn doing don down during each either few for
    from further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is
    isn it its itself just let ll may me might more most must my myself neither no nor not of off on once only or
    other our ours ourselves out over own re s same shall she should shouldn so some such t than that the their
    theirs them themselves then there these they this those through to too under until up upon us ve very was
    wasn we were weren what when where whether which while who whom whose why will with won would wouldn yet you
    your yours yourself yourselves
    """.split()  # noqa: SIM905 - a list would take a line a word
)


@dataclass(frozen=True, slots=True)
class Words:
    """What BM25 looks for: lower case, the words of a phrase joined by one space, each once, in the query's order.

    Attributes:
        terms: words and phrases, see :func:`query_terms`.
        loose: those of the terms that may also stand in another inflection: single words outside quotes.
        pairs: words that follow each other in the query, see :func:`adjacent_pairs`; none that is a term.
    """

    terms: tuple[str, ...]
    loose: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()


def query_terms(query: str) -> list[str]:
    """Return the words and phrases of a query: lower case, a phrase's words joined by one space.

    Stop words outside phrases are left out, unless nothing else is there; each term comes once, in the order of
    the query. An identifier gives the whole as a phrase and its parts: `sched_setaffinity` gives
    "sched setaffinity", "sched" and "setaffinity"; `RFC2119` gives "rfc2119", "rfc 2119", "rfc" and "2119".
    """
    return list(count_terms(query))


def count_terms(query: str) -> Counter[str]:
    """Count the terms that `query_terms` returns."""
    found: Counter[str] = Counter()
    stopped: Counter[str] = Counter()
    for phrase, piece in _PIECE.findall(clean(query)):
        if phrase:
            found.update([_phrase(_WORD.findall(phrase))])
        else:
            for term in _terms(piece):
                (stopped if _is_stopped(term) else found)[term] += 1
    del found[""]
    return found or stopped


def adjacent_pairs(query: str) -> Counter[str]:
    """Count the pairs of words that follow each other outside quotes, without those that hold a stop word.

    `the maximum transfer unit of a link` gives "maximum transfer" and "transfer unit".
    """
    found: Counter[str] = Counter()
    for run in _QUOTED.split(clean(query)):
        words = [word.lower() for word in _WORD.findall(run)]
        found.update(f"{a} {b}" for a, b in pairwise(words) if not {a, b} & STOP_WORDS)
    return found


def loose_words(query: str) -> set[str]:
    """Return the terms of a query that are single words and stand outside quotes."""
    return {term for term in count_terms(_QUOTED.sub(" ", query)) if " " not in term}


def identifier_parts(text: str) -> str:
    """Return the parts of the words in a text that hold several, to be indexed beside it.

    "See RFC2119 and ThreadPool." gives "RFC 2119 Thread Pool".
    """
    parts: list[str] = []
    end = 0
    while found := _BREAK.search(text, end):
        start = found.start()
        while start > end and text[start - 1].isalnum():
            start -= 1
        run = _RUN.match(text, start)
        end = max(found.end(), run.end() if run else 0)
        parts += _parts(text[start:end])
    return " ".join(parts)


def split_identifiers(text: str) -> tuple[str, list[int]]:
    """Put a space between the parts of the words in a text that hold several.

    Returns:
        The text, "See RFC 2119" for "See RFC2119", and the place in the given text of each of its characters, -1 for
        the spaces.
    """
    cuts = {
        word.start() + part
        for word in _WORD.finditer(text)
        if _BREAK.search(word.group())
        for part in _starts(word.group())[1:]
    }
    if not cuts:
        return text, list(range(len(text)))
    places = [place for at in range(len(text)) for place in ((-1, at) if at in cuts else (at,))]
    return "".join(" " if place < 0 else text[place] for place in places), places


def clean(text: str) -> str:
    """Replace what SQLite cannot take in a text: NUL and lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def _terms(piece: str) -> list[str]:
    """Return the terms of what stands between two spaces: the whole, and its parts."""
    words = _WORD.findall(piece)
    terms = [_phrase(words)]
    if len(words) > 1:
        terms += [word.lower() for word in words if len(word) > 1]
    for word in words:
        if _BREAK.search(word):
            terms += _part_terms(word)
    return terms


def _phrase(words: list[str]) -> str:
    return " ".join(words[:_LONGEST_PHRASE]).lower()


def _is_stopped(term: str) -> bool:
    """Whether a term says nothing: a stop word, or one with an apostrophe, such as "don t"."""
    words = term.split()
    return any(word in STOP_WORDS for word in words) and all(word in STOP_WORDS or len(word) == 1 for word in words)


def _part_terms(word: str) -> list[str]:
    parts = [part.lower() for part in _parts(word)]
    if _UNSPACED_RUN.search(word):
        return [" ".join(pair) for pair in pairwise(parts)] or parts
    return [_phrase(parts), *(part for part in parts if len(part) > 1)] if len(parts) > 1 else []


def _starts(word: str) -> list[int]:
    """Return where the parts of a word begin."""
    starts = []
    end = 0
    for part in _parts(word):
        starts.append(word.index(part, end))
        end = starts[-1] + len(part)
    return starts


def _parts(word: str) -> list[str]:
    if _UNSPACED_RUN.search(word):
        return [part for run in re.split(f"([{_UNSPACED}])", word) if (part := run)]
    return _PART.findall(word)
