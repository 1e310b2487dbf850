"""Texts whose tokens are known without a tokenizer."""

import random
import string

WORDS = [
    "river",
    "stone",
    "house",
    "green",
    "water",
    "light",
    "north",
    "table",
    "paper",
    "field",
    "music",
    "story",
    "night",
    "world",
    "hand",
    "tree",
    "road",
    "bridge",
    "winter",
    "summer",
    "garden",
    "window",
    "market",
    "letter",
    "silver",
    "engine",
    "island",
    "forest",
    "castle",
    "doctor",
]
"""Each is one token of the real base."""


def letters(count: int, seed: int = 0) -> str:
    """Make a text of ``count`` letters in words of one to six: the tiny tokenizer reads a letter a token."""
    draw = random.Random(seed)
    drawn = draw.choices(string.ascii_letters, k=count)
    words = []
    while drawn:
        size = draw.randint(1, 6)
        words.append("".join(drawn[:size]))
        del drawn[:size]
    return draw.choice(["", " ", "\n"]) + draw.choice([" ", "  ", "\n"]).join(words)


def words(count: int, seed: int = 0) -> str:
    """Make a text of ``count`` words, a token each for the real base."""
    return " ".join(random.Random(seed).choices(WORDS, k=count))
