"""A vector for the opening of each training document, to find documents of like subject."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from lmk_rag.encoding.network import TextTokenizer
from lmk_rag.training.config import Recipe
from lmk_rag.training.corpus import Corpus
from lmk_rag.training.reading import Piece, lay_out, read

OPENING = 48
"""Content tokens of the body that stand behind the title."""
_BATCH = 256


def openings(
    corpus: Corpus, base: nn.Module, tokenizer: TextTokenizer, recipe: Recipe, dtype: torch.dtype = torch.float32
) -> npt.NDArray[np.float32]:
    """The base's mean over each document's title and first tokens; kept beside the text for the next run.

    Returns:
        float32 (documents, d), each of length 1.
    """
    kept = recipe.text / "openings.npy"
    if kept.exists():
        stored: npt.NDArray[np.float32] = np.load(kept)
        if len(stored) == len(corpus.entries):
            return stored
    vectors = []
    for start in range(0, len(corpus.entries), _BATCH):
        texts = []
        for entry in corpus.entries[start : start + _BATCH]:
            title = tokenizer.backend.encode(entry.title, add_special_tokens=False).ids[:OPENING]
            ids = np.concatenate([np.asarray(title, dtype=np.uint16), corpus.ids(entry)[:OPENING]])
            texts.append(lay_out([Piece(ids, 2 * OPENING)], "mean", tokenizer, recipe.window))
        with torch.no_grad():
            vectors.append(read(base, texts, tokenizer.pad, dtype).vectors.cpu().numpy())
    made = np.concatenate(vectors)
    np.save(kept, made)
    return made
