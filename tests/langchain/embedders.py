"""Embeddings whose vectors can be worked out by hand."""

import time
from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class Letters(Embeddings):
    """Counts letters: vectors of any length, as many APIs give them."""

    def __init__(self, model: str = "letters", letters: str = ALPHABET) -> None:
        self.model = model
        self.letters = letters

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        time.sleep(0)  # what Blockbuster sees where it happens in the event loop
        return [float(text.lower().count(letter)) for letter in self.letters]


def cosines(embedding: Embeddings, query: str, texts: Sequence[str]) -> list[float]:
    """Compare by the definition of the cosine."""
    asked = np.array(embedding.embed_query(query))
    vectors = np.array(embedding.embed_documents(list(texts)))
    return [float(row @ asked / (np.linalg.norm(row) * np.linalg.norm(asked))) for row in vectors]
