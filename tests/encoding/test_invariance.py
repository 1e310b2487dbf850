"""A text's result depends on nothing but the text."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmk_rag.encoding.encoder import Embedding, Encoder
from tests.encoding.conftest import Load, Pooled
from tests.encoding.folders import own
from tests.encoding.texts import letters, words

TEXTS = [letters(length, length) for length in (0, 1, 7, 16, 17, 30, 60, 61, 100, 250)]


def same(found: Embedding, alone: Embedding) -> None:
    assert float(found.vector @ alone.vector) >= 0.9999
    assert np.abs(found.vector - alone.vector).max() < 1e-5
    assert found.evidence.shape == alone.evidence.shape
    assert np.abs(found.evidence - alone.evidence).max(initial=0) < 1e-5
    assert found.spans.tolist() == alone.spans.tolist()
    assert (found.tokens, found.truncated) == (alone.tokens, alone.truncated)


@pytest.fixture(scope="module", params=["lmk", "mean", "cls", "mcls", "lasttoken", "max"])
def encoder(
    request: pytest.FixtureRequest, tiny_bert: Path, load: Load, tmp_path_factory: pytest.TempPathFactory
) -> Encoder:
    folder = tmp_path_factory.mktemp("own")
    return load(own(tiny_bert, folder, request.param, granularity=16, window=64))


@pytest.fixture(scope="module")
def alone(encoder: Encoder) -> list[Embedding]:
    """Each text by itself."""
    return [encoder.encode_documents([text])[0] for text in TEXTS]


@settings(max_examples=10, deadline=None)
@given(picks=st.lists(st.integers(0, len(TEXTS) - 1), min_size=2, max_size=12), budget=st.sampled_from([64, 200, 8192]))
def test_company_and_order_change_nothing(
    encoder: Encoder, alone: list[Embedding], picks: list[int], budget: int
) -> None:
    encoder.inference.budget = budget
    together = encoder.encode_documents([TEXTS[pick] for pick in picks])
    for pick, found in zip(picks, together, strict=True):
        same(found, alone[pick])


def test_company_and_order_change_nothing_in_the_real_model(base_encoder: Pooled) -> None:
    encoder = base_encoder("lmk")
    texts = [words(length, length) for length in (0, 1, 31, 33, 60, 520)]
    alone = [encoder.encode_documents([text])[0] for text in texts]
    order = [4, 2, 5, 0, 3, 1, 2]
    for place, found in zip(order, encoder.encode_documents([texts[place] for place in order]), strict=True):
        same(found, alone[place])
    # Texts that differ give vectors that differ: what was compared above was not one constant.
    assert abs(float(alone[2].vector @ alone[5].vector)) < 0.999


def test_bfloat16_is_close_to_float32(base_model: Path, load: Load, base_encoder: Pooled) -> None:
    half = load(base_model, dtype="bfloat16")
    assert {parameter.dtype.itemsize for parameter in half.network.parameters()} == {2}
    texts = [words(3, 1), words(60, 2)]
    for near, exact in zip(half.encode_documents(texts), base_encoder("mean").encode_documents(texts), strict=True):
        assert near.vector.dtype == near.evidence.dtype == np.float32
        assert float(near.vector @ exact.vector) > 0.999
        assert np.linalg.norm(near.vector) == pytest.approx(1, abs=1e-5)
        assert (np.sum(near.evidence * exact.evidence, axis=1) > 0.995).all()
