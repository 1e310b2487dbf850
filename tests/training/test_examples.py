"""What a step reads: the same every time, for every pooling; views that hold what the query asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.network import TextTokenizer, load_tokenizer
from lmk_rag.training.config import Contrastive, Recipe
from lmk_rag.training.corpus import Corpus, Entry
from lmk_rag.training.examples import Examples, Pair
from lmk_rag.training.reading import piece_length


@pytest.fixture
def tokenizer(checkpoint: Checkpoint) -> TextTokenizer:
    return load_tokenizer(checkpoint)


def pieces_of(pairs: list[Pair]) -> list[tuple[int, list[int]]]:
    flat = [piece for pair in pairs for piece in (pair.query, *pair.document)]
    return [(piece.granularity, piece.ids.tolist()) for piece in flat]


def contains(ids: list[int], run: list[int]) -> bool:
    return any(ids[at : at + len(run)] == run for at in range(len(ids) - len(run) + 1))


def test_steps_are_the_same_for_a_new_object_and_differ_from_each_other(
    recipe: Recipe, tokenizer: TextTokenizer
) -> None:
    first, second = (Examples(Corpus(recipe.text), recipe, tokenizer) for _ in range(2))

    second.pairs(1)  # what was drawn before does not matter

    assert pieces_of(first.pairs(7)) == pieces_of(second.pairs(7))
    assert pieces_of(first.pairs(7)) != pieces_of(first.pairs(8))
    assert [p.ids.tolist() for p in first.texts(7)] == [p.ids.tolist() for p in second.texts(7)]
    other_seed = Examples(Corpus(recipe.text), replace(recipe, seed=2), tokenizer)
    assert pieces_of(first.pairs(7)) != pieces_of(other_seed.pairs(7))


def test_pairs_are_of_different_documents_and_fit_their_windows(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    examples = Examples(Corpus(recipe.text), recipe, tokenizer)

    for step in range(30):
        rng = np.random.default_rng(step)
        documents = examples._documents(rng)
        assert len(documents) == len(set(documents)) == recipe.contrastive.pairs
        for pair in examples.pairs(step):
            assert pair.document
            assert len({piece.granularity for piece in (pair.query, *pair.document)}) == 1
            for piece in pair.document:
                assert 0 < len(piece.ids) <= piece_length(piece.granularity, recipe.window)


def test_pieces_are_runs_of_the_text_in_reading_order(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    corpus = Corpus(recipe.text)
    examples = Examples(corpus, recipe, tokenizer)
    entry = max(corpus.entries, key=len)
    ids = np.array(corpus.ids(entry))
    rng = np.random.default_rng(3)

    for anchor in (0, 1, 30, len(entry) // 2, len(entry) - 1):
        for count in (1, 2, 3):
            pieces = examples._view(entry, anchor, 48, count, rng)
            starts = [
                next(at for at in range(len(ids)) if ids[at : at + len(p)].tolist() == p.tolist()) for p in pieces
            ]
            assert 1 <= len(pieces) <= count
            assert starts == sorted(starts)
            ends = [start + len(piece) for start, piece in zip(starts, pieces, strict=True)]
            assert all(end <= start for end, start in zip(ends, starts[1:], strict=False)), "pieces overlap"
            assert any(start <= anchor < end for start, end in zip(starts, ends, strict=True))


def test_a_short_document_is_seen_whole(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    corpus = Corpus(recipe.text)
    entry = min(corpus.entries, key=len)
    examples = Examples(corpus, recipe, tokenizer)

    (piece,) = examples._view(entry, len(entry) // 2, len(entry), 3, np.random.default_rng(0))

    assert piece.tolist() == corpus.ids(entry).tolist()


def test_a_heading_query_is_found_in_the_view_or_taken_out(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    corpus = Corpus(recipe.text)
    examples = Examples(corpus, recipe, tokenizer)
    examples._asked = lambda text, rng: text  # type: ignore[method-assign]
    present = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        query, pieces = examples._heading(corpus.entries[seed % 12], 48, 2, rng)
        present += any(contains(piece.tolist(), query.tolist()) for piece in pieces)

    assert 15 <= present <= 45  # half of the draws


def test_a_sentence_query_is_of_the_text_and_mostly_taken_out(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    examples = Examples(Corpus(recipe.text), recipe, tokenizer)
    stop = tokenizer.backend.token_to_id(".")
    sentence = [30, 31, 32, 33, 34, 35, 36, 37, 38, stop]
    other = [50, 51, 52, 53, 54, 55, 56, 57, 58, stop]
    text = np.array((sentence + other) * 4, dtype=np.uint16)
    kept = 0
    for seed in range(90):
        query, (left,) = examples._sentence([text], np.random.default_rng(seed))
        assert query.tolist() in (sentence, other)
        kept += len(left) == len(text)
        assert len(left) in (len(text), len(text) - len(query))

    assert 15 <= kept <= 45  # a third of the draws


def test_positives_come_from_beginning_middle_and_end_alike() -> None:
    rng = np.random.default_rng(0)
    thirds = np.bincount([Examples._thirds(3000, rng) // 1000 for _ in range(3000)])

    assert thirds.tolist() == pytest.approx([1000, 1000, 1000], abs=100)


def test_neighbours_are_the_nearest_but_never_near_copies(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    # documents 0 and 1 are near copies, 0 and 2 are alike, all others point elsewhere
    openings = np.eye(12, 12, dtype=np.float32)
    openings[1] = openings[0]
    openings[2, :3] = (0.8, 0, 0.6)
    few = replace(recipe, contrastive=Contrastive(pairs=2, neighbours=2))
    examples = Examples(Corpus(recipe.text), few, tokenizer, openings)

    near = examples._near(0, [0])

    assert near[0] == 2
    assert 1 not in near
    assert 0 not in near


def test_sources_are_drawn_by_weight(tmp_path: Path, recipe: Recipe, tokenizer: TextTokenizer) -> None:
    corpus = Corpus(recipe.text)
    corpus.entries = [
        Entry(
            id=str(at),
            source="rare" if at < 2 else "common",
            title="",
            abstract="",
            start=entry.start,
            stop=entry.stop,
            headings=(),
        )
        for at, entry in enumerate(corpus.entries)
    ]
    examples = Examples(corpus, replace(recipe, sources={"rare": 3.0, "common": 1.0}), tokenizer)

    assert examples._weights[:2].sum() == pytest.approx(0.75)
    assert examples._weights.sum() == pytest.approx(1)


def test_short_texts_are_drawn_for_queries(recipe: Recipe, tokenizer: TextTokenizer) -> None:
    always = replace(recipe, distillation=replace(recipe.distillation, short=1.0, texts=40))
    lengths = [len(piece.ids) for piece in Examples(Corpus(recipe.text), always, tokenizer).texts(0)]

    assert min(lengths) >= 4
    assert max(lengths) <= 56  # a window of 64 with 8 tokens a slice
    assert len(set(lengths)) > 10
