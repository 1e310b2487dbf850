"""Defaults, what is forced against them, and what the user is told."""

import hashlib
import warnings
from pathlib import Path

import numpy as np
import pytest

from lmk_rag.encoding import base_model as base_models
from lmk_rag.encoding import checkpoints
from tests.encoding.conftest import Load
from tests.encoding.folders import generation, own, stock4
from tests.encoding.reference import Reference
from tests.encoding.texts import letters


def told(load: Load, folder: Path | str, **forced: object) -> list[str]:
    """Load, and give what was warned of; notices say the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder = load(folder, **forced)
    found = [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    assert all(text in encoder.notices for text in found)
    return found


def test_a_checkpoint_as_it_was_made_warns_of_nothing(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = generation(tiny_bert, tmp_path / "model", {"eval_splitter_granularity": 16, "lmk_token_id": 3})
    assert told(load, folder) == told(load, folder, pooling="lmk", granularity=16) == []
    assert told(load, stock4(tiny_bert, tmp_path / "stock", "cls"), pooling="cls") == []


def test_a_forced_pooling_says_what_the_model_was_made_for(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path
) -> None:
    folder = stock4(tiny_bert, tmp_path / "model", "cls")
    (text,) = told(load, folder, pooling="lmk", granularity=16)
    assert str(folder) in text
    assert "cls" in text
    assert "lmk" in text
    with pytest.warns(UserWarning, match="cls pooling"):
        encoder = load(folder, pooling="lmk", granularity=16)
    document = letters(100)
    wanted = tiny_reference.expect(document, "lmk", granularity=16, window=128).vector
    np.testing.assert_allclose(encoder.encode_documents([document])[0].vector, wanted, atol=1e-5)


def test_a_forced_granularity_says_what_the_model_was_made_for(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path
) -> None:
    folder = own(tiny_bert, tmp_path / "model", "lmk", granularity=16)
    (text,) = told(load, folder, granularity=24)
    assert "16" in text
    assert "24" in text
    with pytest.warns(UserWarning, match="16"):
        encoder = load(folder, granularity=24)
    document = letters(100)
    wanted = tiny_reference.expect(document, "lmk", granularity=24, window=128).vector
    np.testing.assert_allclose(encoder.encode_documents([document])[0].vector, wanted, atol=1e-5)


def test_generation_c_forced_to_mean_is_a_plain_mean(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path
) -> None:
    folder = generation(tiny_bert, tmp_path / "model", {"landmark_interval": 16, "lmk_token_id": 3})
    with pytest.warns(UserWarning, match="lmk pooling"):
        encoder = load(folder, pooling="mean")
    wanted = tiny_reference.expect("some text", "mean", window=128).vector
    np.testing.assert_allclose(encoder.encode_documents(["some text"])[0].vector, wanted, atol=1e-5)


@pytest.fixture
def shipped(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for shipped adapters, and the tiny BERT as the base."""
    monkeypatch.setattr(checkpoints, "SHIPPED", tmp_path / "models")
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    return tmp_path / "models"


@pytest.mark.usefixtures("shipped")
def test_the_default_without_adapters_is_mean_with_a_notice(tiny_reference: Reference, load: Load) -> None:
    assert told(load, "default") == []
    encoder = load("default")
    assert (encoder.pooling, encoder.granularity, encoder.window) == ("mean", 32, 128)
    (notice,) = encoder.notices
    assert "mean" in notice
    wanted = tiny_reference.expect("some text", "mean", window=128).vector
    np.testing.assert_allclose(encoder.encode_documents(["some text"])[0].vector, wanted, atol=1e-5)
    assert told(load, "default", pooling="mean") == []


def test_adapters_are_not_laid_on_another_base(tiny_bert: Path, load: Load, shipped: Path) -> None:
    own(tiny_bert, shipped / "mean", "mean", granularity=16)
    encoder = load("default", pooling="mean")
    assert encoder.checkpoint.base == str(tiny_bert)
    assert encoder.granularity == 32


@pytest.mark.usefixtures("shipped")
def test_landmarks_are_one_option_away(load: Load) -> None:
    with pytest.warns(UserWarning, match="mean"):
        encoder = load("default", pooling="lmk")
    assert (encoder.pooling, encoder.granularity) == ("lmk", 32)


def test_the_real_default_reads_512_positions(
    base_reference: Reference, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "SHIPPED", tmp_path)
    encoder = load("default", pooling="mean")
    assert (encoder.pooling, encoder.window, encoder.dimension) == ("mean", 512, 384)
    wanted = base_reference.expect("The river runs.", "mean", window=512).vector
    np.testing.assert_allclose(encoder.encode_documents(["The river runs."])[0].vector, wanted, atol=1e-5)


def test_shipped_adapters_are_the_default(
    tiny_bert: Path, load: Load, shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = hashlib.sha256((tiny_bert / "model.safetensors").read_bytes()).hexdigest()
    monkeypatch.setitem(base_models._SHA256, "model.safetensors", weights)
    for pooling, granularity in (("lmk", 16), ("cls", 32), ("mean", 32)):
        own(tiny_bert, shipped / pooling, pooling, granularity=granularity)
    assert told(load, "default") == told(load, "default", pooling="mcls") == []
    assert (load("default").pooling, load("default").granularity) == ("lmk", 16)
    chosen = {pooling: load("default", pooling=pooling) for pooling in ("lmk", "cls", "mean", "mcls")}
    assert {pooling: encoder.pooling for pooling, encoder in chosen.items()} == {each: each for each in chosen}
    assert Path(chosen["mcls"].checkpoint.base) == shipped / "cls"  # the cls adapter, pooled over windows
    assert Path(chosen["mean"].checkpoint.base) == shipped / "mean"
    assert all(encoder.checkpoint.model == "default" for encoder in chosen.values())
