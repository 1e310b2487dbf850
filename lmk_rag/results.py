"""What a search gives back: hits with their passages, near copies under them, and a document's heat strip."""

from dataclasses import dataclass

from lmk_rag.passages import Passage

MODES = ("hybrid", "dense", "bm25")
SCORE_KINDS = {"hybrid": "fusion", "dense": "cosine", "bm25": "bm25"}
"""What a hit's score means, by mode, higher being better:

- ``fusion``: a weighted sum of standardised scores; 0 is the average candidate, there are no bounds (by reciprocal
  rank: above 0, at most 3 / 61, which is being first in all three lists);
- ``cosine``: in [-1, 1]; with evidence, 0.4 of the document's cosine and 0.6 of its evidence's;
- ``bm25``: above 0, without an upper bound.
"""


@dataclass(frozen=True, slots=True)
class FoldedHit:
    """A document that was found too, and says nearly the same as a hit before it: it takes no rank of its own.

    Attributes:
        id: the document's id in its collection.
        path: the file's absolute path (the external id of a document without a file).
        title: as its reader found it.
        score: of the kind of the other hits' scores.
        similarity: share of runs of five words that both texts have among those that either has, in [0, 1].
    """

    id: int
    path: str
    title: str
    score: float
    similarity: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found.

    Attributes:
        rank: counts from 1.
        id: the document's id in its collection.
        path: the file's absolute path (the external id of a document without a file).
        title: as its reader found it.
        score: higher is better; ``Results.score_kind`` says what it is.
        kind: pdf, html, text ...
        pages: number of pages.
        passages: where the document matches, best first.
        folded: near copies of this document that were found too, best first.
    """

    rank: int
    id: int
    path: str
    title: str
    score: float
    kind: str
    pages: int
    passages: tuple[Passage, ...]
    folded: tuple[FoldedHit, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """What a search found.

    Attributes:
        query: as it was asked; for "more like this" the document's title, or its path where it has none.
        mode: hybrid, dense or bm25, as it was done.
        pooling: whose vectors were searched, None where none were.
        score_kind: what the hits' scores are, see :data:`SCORE_KINDS`.
        hits: best first.
        notes: what the user should know, one sentence each.
        folded: for "more like this", the near copies of the document itself, which are no hits.
    """

    query: str
    mode: str
    pooling: str | None
    score_kind: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    folded: tuple[FoldedHit, ...] = ()


@dataclass(frozen=True, slots=True)
class StripCell:
    """A stretch of one page, and how like the query it is.

    Attributes:
        page: counts from 1.
        start: first code point in the page's own text.
        end: code point after the last.
        score: best cosine of the evidence there with the query, in [-1, 1].
    """

    page: int
    start: int
    end: int
    score: float
