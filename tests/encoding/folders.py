"""Model folders of every kind, made from a bare one."""

import json
import shutil
from pathlib import Path
from typing import Any


def write(path: Path, content: Any) -> None:
    """Write JSON, making the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def edit(path: Path, **changes: Any) -> None:
    """Change some values of a JSON file."""
    write(path, json.loads(path.read_text(encoding="utf-8")) | changes)


def copied(source: Path, target: Path) -> Path:
    """Copy the weights, the configuration and the tokenizer, nothing that says how to pool."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    return target


def own(source: Path, target: Path, pooling: str, **told: Any) -> Path:
    """Make a folder in this project's format, with weights."""
    copied(source, target)
    write(target / "lmk_rag.json", {"base": "default", "pooling": pooling, **told})
    return target


def sentence_transformer(
    source: Path,
    target: Path,
    pooling: dict[str, Any],
    settings: dict[str, Any],
    *,
    first: str = "Transformer",
    normalize: bool = True,
    prompts: dict[str, str] | None = None,
) -> Path:
    """Make a folder in the layout of sentence-transformers 4."""
    copied(source, target)
    modules = [("", first), ("1_Pooling", "Pooling"), *([("2_Normalize", "Normalize")] if normalize else [])]
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(modules)
    ]
    write(target / "modules.json", listed)
    write(target / "sentence_bert_config.json", settings)
    write(target / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, **pooling})
    (target / "2_Normalize").mkdir(exist_ok=True)
    told = {"__version__": {"sentence_transformers": "4.1.0"}, "prompts": prompts or {}, "default_prompt_name": None}
    write(target / "config_sentence_transformers.json", told)
    return target


BOOLEANS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


def stock4(source: Path, target: Path, pooling: str, *, window: int = 128, lower: bool = False, **more: Any) -> Path:
    """Make a stock folder of version 4: one boolean a pooling."""
    flags: dict[str, Any] = {
        **dict.fromkeys(BOOLEANS.values(), False),
        "pooling_mode_mean_sqrt_len_tokens": False,
        "pooling_mode_weightedmean_tokens": False,
        BOOLEANS[pooling]: True,
        "include_prompt": True,
    }
    settings = {"max_seq_length": window, "do_lower_case": lower}
    return sentence_transformer(source, target, flags, settings, **more)


def generation(source: Path, target: Path, settings: dict[str, Any], **more: Any) -> Path:
    """Make a folder of sentence-transformers pull request 3642."""
    flags = {**dict.fromkeys(BOOLEANS.values(), False), "pooling_mode_lmk": True}
    return sentence_transformer(
        source, target, flags, {"do_lower_case": False, **settings}, first="LandmarkTransformer", **more
    )
