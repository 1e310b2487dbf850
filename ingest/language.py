"""Which language a text is in, as far as samples of its prose tell."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_SAMPLES = 9
_SAMPLE_CHARACTERS = 1_500
_SHORTEST = 150
_PROSE_SHARE = 0.15
_PROSE_SAMPLES = 0.4
_AGREEING = 0.6
# Runs of five words or more. Code, numbers and tables say nothing about the language.
_PROSE = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*(?:[,;:]?\s+[^\W\d_]+(?:['\u2019-][^\W\d_]+)*){4,}")
# Scripts that write without spaces have no such runs.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{4,}")


@dataclass(frozen=True, slots=True)
class Language:
    """A guess.

    Attributes:
        code: ISO 639-1, or None where the text is too short or no prose.
        confident: Whether enough of the text is prose and most samples of it agree.
    """

    code: str | None
    confident: bool


UNKNOWN = Language(None, confident=False)


def detect(pages: Sequence[str]) -> Language:
    """Guess the language that most of a document's prose is in, by samples spread over its pages."""
    samples = _samples(pages)
    votes = Counter(code for sample in samples if (code := _classify(sample)))
    if not votes:
        return UNKNOWN
    (code, agreeing), *_ = votes.most_common(1)
    enough = votes.total() >= _PROSE_SAMPLES * len(samples)
    return Language(code, confident=enough and agreeing >= _AGREEING * votes.total())


def _samples(pages: Sequence[str]) -> list[str]:
    length = sum(map(len, pages))
    places = [length * number // _SAMPLES for number in range(_SAMPLES)] if length > _SAMPLE_CHARACTERS else [0]
    return [_at(pages, place) for place in places]


def _at(pages: Sequence[str], place: int) -> str:
    """Give a sample that begins at that character of all pages together."""
    parts: list[str] = []
    wanted = _SAMPLE_CHARACTERS
    for page in pages:
        if place >= len(page):
            place -= len(page)
            continue
        parts.append(page[place : place + wanted])
        wanted -= len(parts[-1])
        place = 0
        if wanted <= 0:
            break
    return "\n".join(parts)


def _classify(sample: str) -> str | None:
    prose = " ".join(" ".join(_PROSE.findall(sample)).split()) + "".join(_UNSPACED.findall(sample))
    if len(prose.encode()) < _SHORTEST or len(prose) < _PROSE_SHARE * len(sample):
        return None
    import py3langid

    code: str
    code, _ = py3langid.classify(prose)
    return code if len(code) == 2 else None
