"""What a question asks the meaning of, and the sentences that begin by saying it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lmk_rag.answering.words import written

_ASKS = (
    re.compile(r"(?:what|who)(?:'s| is| are| was| were) (?:an? |the )?(\w.*?)(?:\(\))?\W*$", re.IGNORECASE),
    re.compile(r"(?:what|how) do(?:es)? (?:an? |the )?(\w.*?)(?:\(\))? (?:do|mean|stand for|work)\W*$", re.IGNORECASE),
)
_SAYS = r"\w*\)?(?:\s\([^)]*\))?(?:\s\w+)?\s+(?:is|are|was|were|means?|stands?\s+for|refers?\s+to|denotes?)\b"
_ARTICLE, _LONG_FORM = r"(?:an?\s|the\s)?", r"(?:[\w /-]{1,60}\s\()?"
_QUALIFIED = r"(?:(?:class|def)\s)?(?:\w+\.)*"
_MOST = 5
"""Places of a document that are looked at."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Finds what a sentence about a thing begins with, if it says what the thing is or how a function is called."""

    starts: re.Pattern[str]
    anywhere: re.Pattern[str]

    @classmethod
    def asked(cls, question: str) -> "Definition | None":
        """Make it for "What is X?", "What does X do?" and the like; None for other questions."""
        found = next(filter(None, (each.match(question.strip()) for each in _ASKS)), None)
        if found is None:
            return None
        said, called = written(found[1]) + _SAYS, re.escape(found[1]) + r"\("
        return cls(
            re.compile(f"{_ARTICLE}{_LONG_FORM}{said}|{_QUALIFIED}{called}", re.IGNORECASE),
            re.compile(rf"(?<![^\W_]){said}|^[ \t|]*{_QUALIFIED}{called}", re.IGNORECASE | re.MULTILINE),
        )

    def begins(self, sentence: str) -> bool:
        """Whether a sentence, on one line, begins by saying what was asked."""
        return self.starts.match(sentence) is not None

    def places(self, pages: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Give page (from 1) and start of the first places where it may be said."""
        found = ((n, each.start()) for n, page in enumerate(pages, 1) for each in self.anywhere.finditer(page))
        yield from islice(found, _MOST)
