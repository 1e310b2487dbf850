"""The adapters that come with the package: they fit the real base, do what PEFT makes of them, and are small."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from lmk_rag.encoding.checkpoints import SHIPPED, shipped_poolings
from tests.encoding.conftest import Load
from tests.encoding.reference import Reference

TEXT = "A sender that receives three duplicate acknowledgements retransmits the segment that seems to be missing. " * 30


def unmerged(base: Path, adapter: Path) -> Reference:
    """The base with the adapter beside its weights, as PEFT runs it."""
    from peft import PeftModel
    from transformers import AutoModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers by an old name
        bare = AutoModel.from_pretrained(base, dtype=torch.float32, add_pooling_layer=False)
        model = PeftModel.from_pretrained(bare, adapter).eval()
    return Reference(base, model)


@pytest.mark.parametrize("pooling", ["lmk", "mean", "cls", "mcls"])
def test_a_shipped_adapter_gives_what_peft_and_the_definition_give(base_model: Path, load: Load, pooling: str) -> None:
    adapter = SHIPPED / ("cls" if pooling == "mcls" else pooling)
    told = json.loads((adapter / "lmk_rag.json").read_text(encoding="utf-8"))
    assert told == {"base": "default", "pooling": adapter.name, "granularity": 32, "window": 512}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the default of each pooling warns of nothing
        encoder = load("default", pooling=pooling)
    wanted = unmerged(base_model, adapter).expect(TEXT, pooling, granularity=32, window=512)
    found = encoder.encode_documents([TEXT])[0]
    np.testing.assert_allclose(found.vector, wanted.vector, atol=1e-5)
    assert found.spans.tolist() == [list(span) for span in wanted.spans]
    plain = Reference(base_model).expect(TEXT, pooling, granularity=32, window=512).vector
    assert np.abs(found.vector - plain).max() > 0.01  # and the adapter does something


def test_landmarks_are_the_default(load: Load) -> None:
    encoder = load("default")
    assert (encoder.pooling, encoder.granularity, encoder.window) == ("lmk", 32, 512)
    assert encoder.notices == ()
    assert shipped_poolings() == ["lmk", "mean", "cls", "mcls"]


@pytest.mark.parametrize("pooling", ["lmk", "mean", "cls"])
def test_an_adapter_is_small_and_has_a_card(pooling: str) -> None:
    folder = SHIPPED / pooling
    assert (folder / "adapter_model.safetensors").stat().st_size < 4_000_000
    card = (folder / "README.md").read_text(encoding="utf-8")
    for heading in ("## Data", "## Figures", "## Limits"):
        assert heading in card
