"""Training text as one array of token ids with an entry for each document: the scripts write it, training reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lmk_rag.evaluation.sources.rfc import Section

TokenIds = npt.NDArray[np.uint16]
_TOKENS = "tokens.npy"
_ENTRIES = "documents.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One document of the corpus.

    Attributes:
        id: the package and the file's name; pages of one name in several folders share it.
        source: the Debian package (or family of packages) it is from.
        title: a query for the whole document; empty where it has none.
        abstract: a longer query for the whole document; empty where it has none.
        start: where its tokens begin in the array.
        stop: where they end.
        headings: (text, first token, tokens) of each section heading, counted from ``start``.
    """

    id: str
    source: str
    title: str
    abstract: str
    start: int
    stop: int
    headings: tuple[tuple[str, int, int], ...]

    def __len__(self) -> int:
        """Tokens of the document."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A document before it is tokenised."""

    id: str
    source: str
    title: str
    abstract: str
    sections: tuple[Section, ...]


class Corpus:
    """A folder of training text, its tokens mapped from disk."""

    def __init__(self, folder: Path) -> None:
        """Open the folder that :func:`write` filled."""
        self.tokens: TokenIds = np.load(folder / _TOKENS, mmap_mode="r")
        with (folder / _ENTRIES).open(encoding="utf-8") as lines:
            self.entries = [_entry(json.loads(line)) for line in lines]

    def ids(self, entry: Entry) -> TokenIds:
        """The document's token ids, uint16 (n,)."""
        return self.tokens[entry.start : entry.stop]


def write(folder: Path, texts: Iterable[Text], tokenizer_file: Path, *, least: int = 64) -> int:
    """Tokenise the texts into ``folder``; returns the number of tokens.

    Args:
        folder: made where missing; what is in it is replaced.
        texts: the documents.
        tokenizer_file: a ``tokenizer.json`` whose vocabulary fits 16 bits.
        least: documents of fewer tokens are left out.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    folder.mkdir(parents=True, exist_ok=True)
    arrays: list[TokenIds] = []
    total = 0
    with (folder / _ENTRIES).open("w", encoding="utf-8") as out:
        for text in texts:
            parts = [piece for part in text.sections for piece in (part.heading, part.text)]
            encoded = tokenizer.encode_batch_fast(parts, add_special_tokens=False)
            lengths = [len(piece.ids) for piece in encoded]
            starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
            if starts[-1] < least:
                continue
            headings = tuple(
                (part.heading, starts[2 * at], lengths[2 * at]) for at, part in enumerate(text.sections) if part.heading
            )
            arrays.append(np.concatenate([np.asarray(piece.ids, dtype=np.uint16) for piece in encoded]))
            entry = Entry(
                id=text.id,
                source=text.source,
                title=text.title,
                abstract=text.abstract,
                start=total,
                stop=total + starts[-1],
                headings=headings,
            )
            out.write(json.dumps(asdict(entry), ensure_ascii=False) + "\n")
            total += starts[-1]
    np.save(folder / _TOKENS, np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.uint16))
    return total


def _entry(fields: dict[str, object]) -> Entry:
    headings = fields.pop("headings")
    assert isinstance(headings, list)
    return Entry(**fields, headings=tuple((str(text), int(at), int(n)) for text, at, n in headings))  # type: ignore[arg-type]
