"""An encoder becomes one folder, its adapter merged in, that sentence-transformers and the encoder itself load.

Beside weights and tokenizer the folder holds ``lmk_rag.json`` (how the encoder reads and pools), ``modules.json``
(the class that does the same inside sentence-transformers, see :mod:`lmk_rag.landmark_transformer`) and a card.
"""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoTokenizer
from transformers.utils import logging as transformers_logging

from lmk_rag import __version__
from lmk_rag.encoding.base_model import HUB_NAME, ModelError, is_original
from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.encoder import Encoder

MODULE = "lmk_rag.landmark_transformer.LandmarkTransformer"
_MERGED = {"model", "base", "adapter"}
"""What a fingerprint says of the origin: the merged weights are others than base and adapter, and mean the same."""

_HOW = {
    "lmk": "The text is read in slices of {granularity} tokens, each closed by a landmark token; the vector is the "
    "mean of the states at the landmarks of all windows (landmark pooling, arXiv 2601.21525).",
    "mean": "The vector is the mean of the states of all tokens of all windows.",
    "cls": "The vector is the state of the first window's CLS token; text beyond that window is not seen.",
    "mcls": "The vector is the mean of the states at the CLS tokens of all windows.",
    "lasttoken": "The vector is the state of the last window's last token.",
    "max": "The vector is the largest value, a dimension, of the states of all tokens of all windows.",
}


def export(model: str, folder: Path, pooling: str | None = None) -> Encoder:
    """Write a model as one folder, in float32.

    The folder appears under its name only when it is whole.

    Args:
        model: ``default``, a model folder, or a name on the hub.
        folder: where to write; missing or empty.
        pooling: lmk, mean, cls, mcls, lasttoken or max; None for the model's own.

    Returns:
        The encoder that was written.

    Raises:
        ModelError: where the folder is taken, or the model cannot be had, or the folder could not say all of it.
        OSError: where the folder cannot be written.
    """
    target = folder.expanduser().resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ModelError(f"{folder} exists and is not an empty folder: name one that does not exist yet.")
    encoder = Encoder.load(model, pooling, device="cpu", dtype="float32")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is a rename; what is left unfinished is removed with it.
    with tempfile.TemporaryDirectory(prefix=".lmk-rag-export-", dir=target.parent) as unfinished:
        written = Path(unfinished, target.name)
        written.mkdir()
        _write(encoder, written)
        _check(encoder, written)
        if target.exists():
            target.rmdir()  # Windows renames onto nothing that is there
        written.replace(target)
    return encoder


def settings(encoder: Encoder) -> dict[str, Any]:
    """Tell what ``lmk_rag.json`` says of an encoder whose weights lie beside it."""
    return {"pooling": encoder.pooling, "granularity": encoder.granularity, "window": encoder.window}


def write_network(network: nn.Module, folder: Path) -> None:
    """Write configuration and weights (safetensors, in the network's number format) without a progress bar."""
    bars: Any = transformers_logging  # its functions carry no annotations
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        network.save_pretrained(folder)  # type: ignore[operator]
    finally:
        if shown:
            bars.enable_progress_bar()
    for weights in folder.glob("*.safetensors"):  # written for the owner's eyes only; a model is to be shared
        weights.chmod((folder / "config.json").stat().st_mode)


def _write(encoder: Encoder, folder: Path) -> None:
    spec = encoder.checkpoint
    write_network(encoder.network, folder)
    AutoTokenizer.from_pretrained(spec.base).save_pretrained(folder)
    _json(folder / "lmk_rag.json", settings(encoder))
    _json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": MODULE}])
    model = {
        "model_type": "SentenceTransformer",
        "prompts": {"query": spec.query_prompt, "document": spec.document_prompt},
        "default_prompt_name": None,
        "similarity_fn_name": "cosine",
    }
    _json(folder / "config_sentence_transformers.json", model)
    (folder / "README.md").write_text(_card(encoder, folder.name), encoding="utf-8")
    if card := _adapter_card(spec):
        shutil.copyfile(card, folder / "ADAPTER.md")


def _check(encoder: Encoder, folder: Path) -> None:
    """Refuse a folder that would not give the same vectors: lmk_rag.json cannot say all that other folders can."""
    wanted, found = encoder.fingerprint(), Encoder.load(str(folder), device="cpu", dtype="float32").fingerprint()
    for key in sorted(wanted.keys() - _MERGED):
        if wanted[key] != found[key]:
            raise ModelError(
                f"{encoder.checkpoint.model} cannot be exported: its setting {key} is {wanted[key]!r}, which the "
                f"exported folder would load as {found[key]!r}; use the model's own folder."
            )


def _card(encoder: Encoder, name: str) -> str:
    spec = encoder.checkpoint
    ours = is_original(spec.base)
    base = HUB_NAME if ours else _name(spec)
    about = {
        "license": "apache-2.0" if ours else "other",
        **({"base_model": base} if "/" in base else {}),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "long-documents"],
    }
    front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in about.items())
    origin = f"{base} with a trained adapter merged into its weights" if spec.adapter else base
    licence = "Apache-2.0, as its base model." if ours else f"That of {base} and of what it was trained on."
    if _adapter_card(spec):
        licence += " The adapter and its training data are described in `ADAPTER.md`."
    return f"""---
{front}
---

# {name}

An encoder for whole documents: one vector of {encoder.dimension} dimensions and length 1 for a text of any length,
which is read in windows of {encoder.window} positions. {_HOW[spec.pooling].format(granularity=spec.granularity)}

- Base model: {origin}
- Pooling: {spec.pooling}, granularity {spec.granularity}, window {encoder.window}
- Similarity: cosine
- Written by lmk-rag {__version__}

## Loading it

The class that reads windows and pools them is part of lmk-rag, named in `modules.json`. sentence-transformers imports
a class of another package only when told to trust it:

```python
# pip install "lmk-rag[train]"   (lmk-rag with sentence-transformers 6.2 or later)
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}", trust_remote_code=True)
documents = model.encode_document(["A long text ...", "Another one ..."])
queries = model.encode_query(["What is it about?"])
print(model.similarity(queries, documents))
```

No code lies in this folder; the flag lets sentence-transformers import the installed `{MODULE.rsplit(".", 1)[0]}`.
lmk-rag itself takes the folder as it is: `lmk-rag ingest PATH --model {name}`.

`max_seq_length` is None: nothing is truncated. Set it to read only so many tokens of each text.

## Licence

{licence}
"""


def _adapter_card(spec: Checkpoint) -> Path | None:
    """Find the card that came with the adapter."""
    card = spec.adapter / "README.md" if spec.adapter else None
    return card if card and card.is_file() else None


def _name(spec: Checkpoint) -> str:
    """Name a base: as the hub does where it lies in the hub's cache, else by its folder."""
    cached = re.search(r"models--([^/\\]+)--([^/\\]+)[/\\]snapshots", spec.base)
    return "/".join(cached.groups()) if cached else Path(spec.base).name


def _json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
