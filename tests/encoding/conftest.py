"""Encoders for the tests: on the processor, in float32."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmk_rag.encoding.encoder import Encoder
from tests.encoding.reference import Reference

Load = Callable[..., Encoder]
Pooled = Callable[..., Encoder]


@pytest.fixture(scope="session")
def load() -> Load:
    """Load a folder on the processor in float32, or as told."""

    def _load(folder: Path | str, **told: Any) -> Encoder:
        return Encoder.load(str(folder), **{"device": "cpu", "dtype": "float32", **told})

    return _load


@pytest.fixture(scope="session")
def tiny_reference(tiny_bert: Path) -> Reference:
    """The definition, on the tiny BERT."""
    return Reference(tiny_bert)


@pytest.fixture(scope="session")
def base_reference(base_model: Path) -> Reference:
    """The definition, on the real base."""
    return Reference(base_model)


@pytest.fixture(scope="session")
def base_encoder(base_model: Path, load: Load) -> Pooled:
    """The real base under any pooling and granularity; its weights are read once."""
    loaded = load(base_model)

    def _pooled(pooling: str, granularity: int = 32) -> Encoder:
        spec = replace(loaded.checkpoint, pooling=pooling, granularity=granularity)
        return Encoder(spec, loaded.tokenizer, loaded.network, window=512, max_tokens=None)

    return _pooled
