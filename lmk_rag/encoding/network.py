"""The tokenizer and the network of a checkpoint, loaded quietly and ready for inference."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, normalizers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from lmk_rag.encoding.base_model import ModelError
from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.landmarks import Tokens

_POSITIONS_BEHIND_PADDING = {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "data2vec-text"}
"""Model types whose position table starts behind the padding id, so that it holds fewer tokens than its size."""


@dataclass(frozen=True)
class TextTokenizer:
    """A fast tokenizer reduced to what the encoder needs.

    Attributes:
        backend: the tokenizer itself, which neither pads nor truncates nor adds special tokens.
        cls: id that opens a landmark window.
        landmark: id of the landmark, None where the tokenizer has neither SEP nor EOS.
        prefix: ids that the tokenizer puts before a text.
        suffix: ids that it puts behind.
        pad: id that fills a batch up.
        window: positions that its configuration allows, None where it does not say.
    """

    backend: Tokenizer
    cls: int | None
    landmark: int | None
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    pad: int
    window: int | None

    def tokens(self, texts: list[str]) -> Iterator[Tokens]:
        """Tokenise without special tokens; offsets count code points."""
        for encoding in self.backend.encode_batch(texts, add_special_tokens=False):
            ids = np.asarray(encoding.ids, dtype=np.int32)
            yield Tokens(ids, np.asarray(encoding.offsets, dtype=np.int32).reshape(-1, 2))


def load_tokenizer(checkpoint: Checkpoint) -> TextTokenizer:
    """Load a checkpoint's tokenizer.

    Raises:
        ModelError: where there is none, or only a slow one, or landmarks cannot be told from padding.
    """
    with _quiet(), _understandable(checkpoint.base):
        tokenizer = AutoTokenizer.from_pretrained(checkpoint.base)
    if not tokenizer.is_fast:
        raise ModelError(f"{checkpoint.base} has no fast tokenizer, and only a fast one tells where a token stands.")
    landmark = checkpoint.landmark
    if landmark is None:
        landmark = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    if checkpoint.pooling == "lmk" and landmark is not None and landmark == tokenizer.pad_token_id:
        raise ModelError(
            f"{checkpoint.base} pads with its landmark (token {landmark}), so landmarks would be masked: give its "
            "tokenizer a padding token of its own."
        )
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_truncation()
    backend.no_padding()
    if checkpoint.lowercase:
        named = [normalizers.Lowercase(), *([backend.normalizer] if backend.normalizer else [])]
        backend.normalizer = normalizers.Sequence(named)
    prefix, suffix = _special_ids(backend)
    window = tokenizer.model_max_length
    return TextTokenizer(
        backend=backend,
        cls=tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id,
        landmark=landmark,
        prefix=prefix,
        suffix=suffix,
        pad=tokenizer.pad_token_id or 0,
        window=window if window < 10**9 else None,
    )


def _special_ids(backend: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find the ids that the tokenizer's own template puts before and behind a text."""
    encoding = backend.encode("a", add_special_tokens=True)
    special = encoding.special_tokens_mask
    content = [position for position, mark in enumerate(special) if not mark] or [len(special)]
    return tuple(encoding.ids[: content[0]]), tuple(encoding.ids[content[-1] + 1 :])


def load_network(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> nn.Module:
    """Load a checkpoint's weights, merge its adapter in, and make it ready for inference.

    Raises:
        ModelError: where the weights or the adapter cannot be read.
    """
    with _quiet(), _understandable(checkpoint.base):
        network = AutoModel.from_pretrained(checkpoint.base, dtype=torch.float32, use_safetensors=True)
    if hasattr(network, "pooler"):
        network.pooler = None  # the pooling is ours, theirs would only cost time
    if checkpoint.adapter is not None:
        from peft import PeftModel

        with _understandable(str(checkpoint.adapter)), warnings.catch_warnings():
            # peft 0.21 asks transformers 5.24 by a name that is being retired; a user can do nothing about it.
            warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
            network = PeftModel.from_pretrained(network, str(checkpoint.adapter)).merge_and_unload()
    module: nn.Module = network.to(device=device, dtype=dtype).eval().requires_grad_(False)
    return module


def positions(checkpoint: Checkpoint, tokenizer_window: int | None) -> int:
    """Tell how many positions the model reads at once: the checkpoint's word, at most what its table holds.

    Raises:
        ModelError: where neither checkpoint, tokenizer nor configuration says.
    """
    with _quiet(), _understandable(checkpoint.base):
        config = AutoConfig.from_pretrained(checkpoint.base)
    table = getattr(config, "max_position_embeddings", None)
    if table is not None and config.model_type in _POSITIONS_BEHIND_PADDING:
        table -= (config.pad_token_id or 0) + 1
    known = [size for size in (checkpoint.window or tokenizer_window, table) if size]
    if not known:
        raise ModelError(f"{checkpoint.base} does not say how many tokens it reads: set max_seq_length in its folder.")
    return int(min(known))


def forward(network: nn.Module, ids: Tensor, mask: Tensor | None) -> Tensor:
    """Run the network.

    Args:
        network: what :func:`load_network` gave.
        ids: token ids, int64 (windows, length).
        mask: true where a token stands, bool (windows, length); None where no window is padded.

    Returns:
        The last layer's states (windows, length, d).
    """
    states: Tensor = network(input_ids=ids, attention_mask=mask).last_hidden_state
    return states


def pick_device(device: str) -> torch.device:
    """Choose the device: a GPU when there is one, else the processor, unless one is named.

    Raises:
        ModelError: where the named device is not there.
    """
    if device == "auto":
        return torch.device(
            "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        )
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(f"Device {device!r} cannot be used ({error}): choose auto, cpu, cuda or mps.") from error
    return torch.device(device)


def pick_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Choose the number format: bfloat16 where the hardware computes in it, float32 elsewhere, unless one is named.

    Raises:
        ModelError: where ``dtype`` is not auto, float32, bfloat16 or float16.
    """
    named: dict[str, torch.dtype] = {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
    }
    if dtype in named:
        return named[dtype]
    if dtype != "auto":
        raise ModelError(f"Number format {dtype!r} is not known: choose auto, {', '.join(named)}.")
    return torch.bfloat16 if _computes_bfloat16(device) else torch.float32


def _computes_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    # torch has no public question for this; without the answer float32 is always right.
    questions: list[Any] = [
        getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    ]
    return any(bool(question()) for question in questions if question)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' progress bars and load reports off the terminal."""
    noise: Any = transformers_logging  # its functions carry no annotations
    level, bars = noise.get_verbosity(), noise.is_progress_bar_enabled()
    noise.set_verbosity_error()
    noise.disable_progress_bar()
    try:
        yield
    finally:
        noise.set_verbosity(level)
        if bars:
            noise.enable_progress_bar()


@contextmanager
def _understandable(source: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"The model in {source} cannot be loaded: {first}") from error
