"""Vectors, evidence, spans and counts against the slow reference."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lmk_rag.encoding.encoder import Embedding
from tests.encoding.conftest import Load, Pooled
from tests.encoding.folders import own
from tests.encoding.reference import Expected, Reference
from tests.encoding.texts import letters, words

POOLINGS = ("lmk", "mean", "cls", "mcls", "lasttoken", "max")


def agree(found: Embedding, expected: Expected) -> None:
    assert found.vector.dtype == np.float32
    assert found.evidence.dtype == np.float32
    assert found.spans.dtype == np.int32
    assert found.vector.shape == expected.vector.shape
    np.testing.assert_allclose(found.vector, expected.vector, atol=1e-5, rtol=0)
    assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-5)
    assert found.evidence.shape == (len(expected.evidence), len(expected.vector))
    for vector, wanted in zip(found.evidence, expected.evidence, strict=True):
        np.testing.assert_allclose(vector, wanted, atol=1e-5, rtol=0)
    assert [tuple(span) for span in found.spans.tolist()] == expected.spans
    assert (found.tokens, found.truncated) == (expected.tokens, expected.truncated)


def tiny_lengths(granularity: int, window: int, pooling: str) -> list[int]:
    """Empty, one token, one slice, one more, exactly one window, one more, several windows."""
    if pooling != "lmk":
        full = window - 2
    else:
        slices, room = divmod(window - 1, granularity + 1)
        full = slices * granularity + max(room - 1, 0)
    return [0, 1, granularity, granularity + 1, full - 1, full, full + 1, 2 * full, 3 * full + 5]


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(("granularity", "window"), [(1, 24), (16, 64), (16, 53), (32, 128)])
def test_tiny_model_equals_the_definition(
    tiny_bert: Path,
    tiny_reference: Reference,
    load: Load,
    tmp_path: Path,
    pooling: str,
    granularity: int,
    window: int,
) -> None:
    encoder = load(own(tiny_bert, tmp_path / "own", pooling, granularity=granularity, window=window))
    assert (encoder.pooling, encoder.granularity, encoder.window, encoder.dimension) == (
        pooling,
        granularity,
        window,
        32,
    )
    lengths = tiny_lengths(granularity, window, pooling)
    texts = [letters(length, seed) for seed, length in enumerate(lengths)]
    for text, length, found in zip(texts, lengths, encoder.encode_documents(texts), strict=True):
        expected = tiny_reference.expect(text, pooling, granularity=granularity, window=window)
        agree(found, expected)
        assert found.tokens + found.truncated == length
        if pooling in ("lmk", "mean", "mcls"):
            assert found.truncated == 0


@pytest.mark.parametrize("granularity", [1, 16, 32])
def test_spans_hold_exactly_the_letters_of_their_slices(
    tiny_bert: Path, load: Load, tmp_path: Path, granularity: int
) -> None:
    encoder = load(own(tiny_bert, tmp_path / "own", "lmk", granularity=granularity, window=80))
    for length in (1, granularity, granularity + 1, 79, 200):
        text = letters(length, length)
        plain = "".join(text.split())
        spans = encoder.encode_documents([text])[0].spans
        slices = [plain[start : start + granularity] for start in range(0, length, granularity)]
        assert ["".join(text[start:end].split()) for start, end in spans] == slices
        assert all(not text[edge].isspace() for start, end in spans for edge in (start, end - 1))
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize("pooling", ["mean", "mcls"])
def test_spans_of_the_baselines_cover_every_letter_once(
    tiny_bert: Path, load: Load, tmp_path: Path, pooling: str
) -> None:
    encoder = load(own(tiny_bert, tmp_path / "own", pooling, granularity=16, window=64))
    text = letters(200, 3)
    spans = encoder.encode_documents([text])[0].spans
    read = ["".join(text[start:end].split()) for start, end in spans]
    assert "".join(read) == "".join(text.split())
    # A window holds 62 letters: slices of 16, 16, 16 and 14; the last window holds 200 - 3 * 62 = 14.
    assert [len(each) for each in read] == ([16, 16, 16, 14] * 3 + [14] if pooling == "mean" else [62, 62, 62, 14])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_real_model_equals_the_definition(base_reference: Reference, base_encoder: Pooled, pooling: str) -> None:
    # 15 slices fill 496 of 512 positions and leave room for a last one of 15 tokens; without landmarks 510 fit.
    full = 495 if pooling == "lmk" else 510
    texts = ["", "river", words(33, 1), words(full, 2), words(full + 1, 3)]
    for text, found in zip(texts, base_encoder(pooling).encode_documents(texts), strict=True):
        agree(found, base_reference.expect(text, pooling, granularity=32, window=512))
        assert found.tokens + found.truncated == len(text.split())
        if pooling == "lmk":
            listed = text.split()
            slices = [listed[start : start + 32] for start in range(0, len(listed), 32)] or [[]]
            assert [text[start:end].split() for start, end in found.spans] == slices


@pytest.mark.parametrize("granularity", [1, 16])
def test_real_model_at_other_granularities(base_reference: Reference, base_encoder: Pooled, granularity: int) -> None:
    for text in (words(40, 4), words(300, 5)):
        expected = base_reference.expect(text, "lmk", granularity=granularity, window=512)
        agree(base_encoder("lmk", granularity).encode_documents([text])[0], expected)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_max_tokens_is_kept_and_reported(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path, pooling: str
) -> None:
    folder = own(tiny_bert, tmp_path / "own", pooling, granularity=16, window=64)
    encoder = load(folder, max_tokens=40)
    texts = [letters(39, 1), letters(40, 2), letters(41, 3), letters(150, 4)]
    found = encoder.encode_documents(texts)
    assert [each.truncated for each in found] == [0, 0, 1, 110]
    assert [each.tokens for each in found] == [39, 40, 40, 40]
    for text, each in zip(texts, found, strict=True):
        agree(each, tiny_reference.expect(text, pooling, granularity=16, window=64, max_tokens=40))


def test_queries_take_the_same_path(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    encoder = load(own(tiny_bert, tmp_path / "own", "lmk", granularity=16))
    texts = ["what is this", letters(50)]
    for query, document in zip(encoder.encode_queries(texts), encoder.encode_documents(texts), strict=True):
        np.testing.assert_allclose(query.vector, document.vector, atol=1e-6)
        np.testing.assert_allclose(query.evidence, document.evidence, atol=1e-6)
        assert query.spans.tolist() == document.spans.tolist()


def test_no_text_gives_no_embedding(tiny_bert: Path, load: Load) -> None:
    assert load(tiny_bert, pooling="mean").encode_documents([]) == []


def test_progress_counts_every_position_once(tiny_bert: Path, load: Load) -> None:
    encoder = load(tiny_bert, pooling="mean")
    read: list[int] = []
    encoder.encode_documents([letters(10), letters(126), letters(127)], progress=read.append)
    assert sum(read) == 12 + 128 + 128 + 3


def test_bare_folder_with_pooling_and_granularity(tiny_bert: Path, tiny_reference: Reference, load: Load) -> None:
    # What the authors' training leaves behind says nothing of pooling: no warning can be due, whatever is chosen.
    for granularity in (16, 32):
        encoder = load(tiny_bert, pooling="lmk", granularity=granularity)
        assert encoder.notices == ()
        text = letters(140)
        agree(
            encoder.encode_documents([text])[0],
            tiny_reference.expect(text, "lmk", granularity=granularity, window=128),
        )
    for pooling in POOLINGS[1:]:
        agree(
            load(tiny_bert, pooling=pooling).encode_documents([letters(130)])[0],
            tiny_reference.expect(letters(130), pooling, window=128),
        )
