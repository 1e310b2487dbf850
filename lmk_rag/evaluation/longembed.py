"""The two synthetic tasks of LongEmbed (arXiv 2404.12096): find the one document that holds a given fact.

``passkey``: "The pass key of NAME is N", set at a random place in a filler text that repeats itself. ``needle``:
a sentence about a person or thing, set at a random place in an essay. Both for lengths of 256 to 32,768 tokens,
with 50 queries and 100 documents a length; documents compete within their length.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from lmk_rag.evaluation.beir import Dataset

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768)
"""Tokens of the documents, about: words are counted and taken for four thirds of a token."""
QUERIES = 50
DOCUMENTS = 100
_TOKENS_A_WORD = 4 / 3

_FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
_GIVEN = (
    "Ada", "Boris", "Carla", "Diego", "Elena", "Farid", "Greta", "Hugo", "Irene", "Jonas", "Kira", "Liam", "Mona",
    "Nils", "Olga", "Pablo", "Quinn", "Rosa", "Samir", "Tilda", "Uwe", "Vera", "Wanda", "Xenia", "Yusuf",
)  # fmt: skip
_FAMILY = (
    "Abbott", "Becker", "Castillo", "Dubois", "Eriksen", "Fischer", "Garcia", "Hansen", "Ivanova", "Jensen",
    "Keller", "Lopez",
)  # fmt: skip

_SUBJECTS = (
    "the harbour", "a young company", "the old library", "most writers", "the river", "an essay", "the city council",
    "a good teacher", "the morning train", "every gardener", "the small workshop", "a careful reader", "a sailor",
    "the village school", "an honest merchant", "the night watch", "a long winter", "the painter", "the orchestra",
    "the mountain road",
)  # fmt: skip
_VERBS = (
    "remembers", "follows", "keeps", "repairs", "describes", "loses", "finds", "learns from", "waits for", "builds",
    "measures", "shares", "forgets", "questions", "admires", "carries", "protects", "draws", "counts", "explains",
)  # fmt: skip
_OBJECTS = (
    "the first attempt", "a simple idea", "the price of bread", "an unfinished bridge", "the customs of the town",
    "letters from abroad", "a narrow street", "the habit of work", "an early mistake", "the shape of the coast",
    "old machines", "a rumour of war", "the colour of the sea", "quiet afternoons", "a book of maps",
    "the rules of the game",
    "a field of barley", "the sound of bells", "a debt of honour", "the weight of tradition",
)  # fmt: skip
_NEEDLES = (
    ("The best thing to do in {a} is to {b} on a sunny day.", "What is the best thing to do in {a}?"),
    ("The secret ingredient in the soup of {a} is {b}.", "What is the secret ingredient in the soup of {a}?"),
    ("The treasure of {a} is buried under {b}.", "Where is the treasure of {a} buried?"),
    ("The favourite instrument of {a} was always {b}.", "What was the favourite instrument of {a}?"),
    ("The museum of {a} is known for its collection of {b}.", "What is the museum of {a} known for?"),
)
_PLACES = (
    "Aldmoor", "Brightwater", "Caldera", "Dunmere", "Eastvale", "Farrowdale", "Glenhaven", "Hollowby",
    "Ironbridge", "Juniper", "Kestrelford", "Larkspur", "Marrowick", "Nettlebed", "Oakhurst", "Pinecrest",
    "Quarrytown", "Ravensholm", "Saltmarsh", "Thornbury", "Underhill", "Violetta", "Westerleigh", "Yarrowfield",
    "Zephyrton",
)  # fmt: skip
_THINGS = (
    "eating a sandwich in the park", "smoked paprika", "an iron lantern", "the glass harmonica", "painted clocks",
    "dried figs", "a stone well", "the bass clarinet", "carved whistles", "wild thyme",
)  # fmt: skip


def names() -> list[str]:
    """The tasks' names with their lengths: ``passkey-256`` and so on."""
    return [f"{task}-{length}" for task in ("passkey", "needle") for length in LENGTHS]


def generate(task: str, length: int) -> Dataset:
    """One task at one length; the same every time.

    Args:
        task: ``passkey`` or ``needle``.
        length: tokens of each document, about.
    """
    rng = random.Random(f"{task} {length}")
    words = int(length / _TOKENS_A_WORD)
    facts = (_passkeys if task == "passkey" else _needles)(rng)
    filler: Callable[[], list[str]] = _repeated if task == "passkey" else lambda: _essay(rng)
    corpus: dict[str, str] = {}
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for at, (fact, question) in enumerate(facts):
        document = f"{task}-{length}-{at}"
        corpus[document] = _hidden(fact, filler, words, rng)
        if at < QUERIES:
            query = f"{document}-query"
            queries[query], qrels[query] = question, {document: 1}
    return Dataset(name=f"{task}-{length}", corpus=corpus, queries=queries, qrels=qrels)


def _passkeys(rng: random.Random) -> list[tuple[str, str]]:
    people = [f"{given} {family}" for given in _GIVEN for family in _FAMILY]
    return [
        (f"The pass key of {person} is {number}. Remember it. {number} is the pass key of {person}.",
         f"What is the pass key of {person}?")
        for person, number in zip(
            rng.sample(people, DOCUMENTS), rng.sample(range(10_000, 100_000), DOCUMENTS), strict=True
        )
    ]  # fmt: skip


def _needles(rng: random.Random) -> list[tuple[str, str]]:
    subjects = [(pattern, place) for pattern in _NEEDLES for place in _PLACES]
    return [
        (fact.format(a=place, b=rng.choice(_THINGS)), question.format(a=place))
        for (fact, question), place in rng.sample(subjects, DOCUMENTS)
    ]


def _repeated() -> list[str]:
    return [sentence.strip() + "." for sentence in _FILLER.split(".") if sentence.strip()]


def _essay(rng: random.Random) -> list[str]:
    sentence = f"{rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)}."
    return [sentence[0].upper() + sentence[1:]]


def _hidden(fact: str, filler: Callable[[], list[str]], words: int, rng: random.Random) -> str:
    """Filler of so many words with the fact between two of its sentences."""
    sentences: list[str] = []
    left = words - len(fact.split())
    while left > 0:
        for sentence in filler():
            left -= len(sentence.split())
            if left < 0:
                break
            sentences.append(sentence)
    sentences.insert(rng.randint(0, len(sentences)), fact)
    return " ".join(sentences)
