"""The fingerprint is equal exactly where vectors may be compared."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.encoding.conftest import Load
from tests.encoding.folders import copied, edit, generation, own, stock4, write


def mark(load: Load, folder: Path, **told: Any) -> dict[str, Any]:
    """The fingerprint, without the name that does not count; it survives JSON."""
    found = load(folder, **told).fingerprint()
    assert json.loads(json.dumps(found)) == found
    return {key: value for key, value in found.items() if key != "model"}


def change_weights(path: Path) -> None:
    """Add a little to one weight."""
    weights = load_file(path)
    name = sorted(name for name in weights if name.endswith("weight") or "lora_B" in name)[0]
    changed = weights[name].clone()
    changed.view(-1)[0] += 0.5
    save_file({**weights, name: changed}, path, metadata={"format": "pt"})


def test_two_paths_to_the_same_model(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    first = own(tiny_bert, tmp_path / "first", "lmk", granularity=16)
    shutil.copytree(first, tmp_path / "second")
    assert mark(load, first) == mark(load, tmp_path / "second")
    assert mark(load, first) == mark(load, first, dtype="bfloat16")
    assert load(first).fingerprint()["model"] == str(first)


def test_what_decides_a_vector_is_in_it(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = own(tiny_bert, tmp_path / "model", "lmk", granularity=16, window=64)
    found = [mark(load, folder), mark(load, folder, max_tokens=10), mark(load, folder, max_tokens=11)]
    for name, told in {
        "granularity": {"pooling": "lmk", "granularity": 17, "window": 64},
        "pooling": {"pooling": "mean", "granularity": 16, "window": 64},
        "window": {"pooling": "lmk", "granularity": 16, "window": 65},
    }.items():
        write(copied(tiny_bert, tmp_path / name) / "lmk_rag.json", told)
        found.append(mark(load, tmp_path / name))
    change_weights(own(tiny_bert, tmp_path / "weights", "lmk", granularity=16, window=64) / "model.safetensors")
    found.append(mark(load, tmp_path / "weights"))
    edit(own(tiny_bert, tmp_path / "config", "lmk", granularity=16, window=64) / "config.json", layer_norm_eps=1e-3)
    found.append(mark(load, tmp_path / "config"))
    tokenizer = own(tiny_bert, tmp_path / "tokenizer", "lmk", granularity=16, window=64) / "tokenizer.json"
    told = json.loads(tokenizer.read_text())
    write(tokenizer, {**told, "normalizer": {**told["normalizer"], "lowercase": True}})
    found.append(mark(load, tmp_path / "tokenizer"))
    for one in range(len(found)):
        for other in range(one):
            assert found[one] != found[other], (one, other)


def test_landmark_and_prompts_are_in_it(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    b = {"eval_splitter_granularity": 16}
    found = [
        mark(load, generation(tiny_bert, tmp_path / "b", {**b, "lmk_token_id": 3})),
        mark(load, generation(tiny_bert, tmp_path / "other", {**b, "lmk_token_id": 4})),
        mark(load, generation(tiny_bert, tmp_path / "c", {"landmark_interval": 16, "lmk_token_id": 3})),
        mark(load, stock4(tiny_bert, tmp_path / "plain", "mean")),
        mark(load, stock4(tiny_bert, tmp_path / "query", "mean", prompts={"query": "q: "})),
        mark(load, stock4(tiny_bert, tmp_path / "document", "mean", prompts={"document": "q: "})),
    ]
    for one in range(len(found)):
        for other in range(one):
            assert found[one] != found[other], (one, other)


def test_weights_replaced_where_they_lie(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = own(tiny_bert, tmp_path / "model", "mean")
    before = mark(load, folder)
    change_weights(folder / "model.safetensors")
    assert mark(load, folder) != before


def test_adapters(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModel

    base = AutoModel.from_pretrained(str(tiny_bert), dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by an old name
        model = get_peft_model(base, LoraConfig(r=2, lora_alpha=4, target_modules=["query"]))
    model.save_pretrained(str(tmp_path / "one"))
    write(tmp_path / "one" / "lmk_rag.json", {"base": str(tiny_bert), "pooling": "mean", "granularity": 32})
    shutil.copytree(tmp_path / "one", tmp_path / "same")
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    change_weights(tmp_path / "other" / "adapter_model.safetensors")
    shutil.copytree(tmp_path / "one", tmp_path / "alpha")
    edit(tmp_path / "alpha" / "adapter_config.json", lora_alpha=8)
    one = mark(load, tmp_path / "one")
    assert one == mark(load, tmp_path / "same")
    assert one["adapter"] is not None
    bare = mark(load, own(tiny_bert, tmp_path / "bare", "mean", granularity=32))
    assert one["base"] == bare["base"]
    assert bare["adapter"] is None
    for other in ("other", "alpha"):
        assert mark(load, tmp_path / other) != one


@pytest.mark.parametrize("pooling", ["mean", "lmk"])
def test_a_fingerprint_is_the_same_every_time(tiny_bert: Path, load: Load, tmp_path: Path, pooling: str) -> None:
    folder = own(tiny_bert, tmp_path / "model", pooling)
    assert load(folder).fingerprint() == load(folder).fingerprint()
