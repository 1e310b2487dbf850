"""Texts become embeddings: tokens, windows, batches, states, vectors, in one pass."""

import hashlib
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from lmk_rag.encoding import network as networks
from lmk_rag.encoding.base_model import ModelError, ModelWarning, sha256_file
from lmk_rag.encoding.checkpoints import Checkpoint, resolve
from lmk_rag.encoding.inference import FloatArray, Inference, WindowStates
from lmk_rag.encoding.landmarks import Tokens, Window, landmark_windows, plain_windows
from lmk_rag.encoding.pooling import mean_over_windows, normalize

_DECIDING = ("*.safetensors", "config.json", "adapter_config.json")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Embedding:
    """What the encoder makes of one text.

    Attributes:
        vector: float32 (d,), length 1.
        evidence: float32 (n, d), each of length 1; n is 0 for the poolings that keep none (cls, lasttoken, max).
        spans: the code points [start, end) of the text that each evidence vector stands for, int32 (n, 2).
        tokens: content tokens read.
        truncated: content tokens that were not read, because of ``max_tokens`` or because the pooling sees one
            window only (cls, lasttoken).
    """

    vector: FloatArray
    evidence: FloatArray
    spans: npt.NDArray[np.int32]
    tokens: int
    truncated: int


class Encoder:
    """A model with its pooling: long texts in, one vector each out, with the evidence vectors it is made of.

    Make one with :meth:`load`. The result for a text does not depend on what it is encoded with.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokenizer: networks.TextTokenizer,
        network: nn.Module,
        *,
        window: int,
        max_tokens: int | None,
    ) -> None:
        """Put the parts together; :meth:`load` is the usual way."""
        self.checkpoint = checkpoint
        self.window = window
        self.max_tokens = max_tokens
        self.tokenizer = tokenizer
        self.network = network
        self.inference = Inference(network, tokenizer.pad, maximum=checkpoint.pooling == "max")

    @classmethod
    def load(
        cls,
        model: str = "default",
        pooling: str | None = None,
        granularity: int | None = None,
        max_tokens: int | None = None,
        device: str = "auto",
        dtype: str = "auto",
    ) -> "Encoder":
        """Load a model.

        Args:
            model: ``default``, a model folder, or a name on the hub.
            pooling: lmk, mean, cls, mcls, lasttoken or max; None for the checkpoint's own.
            granularity: content tokens a landmark closes; None for the checkpoint's own.
            max_tokens: content tokens read of each text; None for all of them.
            device: auto, cpu, cuda or mps.
            dtype: auto, float32, bfloat16 or float16.

        Raises:
            ModelError: where the model cannot be had or used so; one sentence says why and what to do.
        """
        if max_tokens is not None and max_tokens < 1:
            raise ModelError(f"max_tokens must be at least 1, not {max_tokens}.")
        checkpoint = resolve(model, pooling, granularity)
        for notice in checkpoint.notices:
            if "trained for" in notice or "made for" in notice:
                warnings.warn(notice, ModelWarning, stacklevel=2)
        tokenizer = networks.load_tokenizer(checkpoint)
        window = networks.positions(checkpoint, tokenizer.window)
        chosen = networks.pick_device(device)
        network = networks.load_network(checkpoint, chosen, networks.pick_dtype(dtype, chosen))
        encoder = cls(checkpoint, tokenizer, network, window=window, max_tokens=max_tokens)
        encoder._layout(Tokens(np.empty(0, np.int32), np.empty((0, 2), np.int32)))  # refuse what cannot work now
        return encoder

    @property
    def pooling(self) -> str:
        """Name the pooling."""
        return self.checkpoint.pooling

    @property
    def granularity(self) -> int:
        """Count the content tokens of a slice."""
        return self.checkpoint.granularity

    @property
    def dimension(self) -> int:
        """Give the length of a vector."""
        return int(self.network.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def notices(self) -> tuple[str, ...]:
        """Say what a user should know about this model, a sentence each."""
        return self.checkpoint.notices

    def fingerprint(self) -> dict[str, Any]:
        """Describe everything that decides a vector, JSON-able: vectors of two encoders compare if it is equal.

        Returns:
            base and adapter and tokenizer (sha256), pooling, granularity, window, dimension, max_tokens and
            prompts; ``model``, which names where it came from, is the one entry that does not count.
        """
        spec = self.checkpoint
        return {
            "model": spec.model,
            "base": _digest(Path(spec.base)),
            "adapter": _digest(spec.adapter) if spec.adapter else None,
            "tokenizer": hashlib.sha256(self.tokenizer.backend.to_str().encode()).hexdigest(),
            "pooling": spec.pooling,
            "granularity": spec.granularity,
            "window": self.window,
            "dimension": self.dimension,
            "max_tokens": self.max_tokens,
            "closing_landmark": spec.closing_landmark,
            "special": [self.tokenizer.cls, self.tokenizer.landmark, *self.tokenizer.prefix, *self.tokenizer.suffix],
            "prompts": [spec.query_prompt, spec.document_prompt],
        }

    def encode_documents(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> list[Embedding]:
        """Embed whole documents of any length.

        Args:
            texts: any strings, empty ones and lone surrogates included.
            progress: called with the number of positions after each batch.

        Returns:
            An embedding a text, in the order given.
        """
        return self._encode(texts, self.checkpoint.document_prompt, progress)

    def encode_queries(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed queries, by the same path as documents; a long one has several evidence vectors."""
        return self._encode(texts, self.checkpoint.query_prompt, None)

    def _encode(self, texts: Sequence[str], prompt: str, progress: Callable[[int], None] | None) -> list[Embedding]:
        readable = [prompt + _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text) for text in texts]
        tokens = list(self.tokenizer.tokens(readable))
        layouts = [self._layout(part[: self.max_tokens]) for part in tokens]
        states = iter(self.inference.run([window for layout in layouts for window in layout], progress))
        return [
            self._embedding(len(part), layout, [next(states) for _ in layout], len(prompt))
            for part, layout in zip(tokens, layouts, strict=True)
        ]

    def _layout(self, tokens: Tokens) -> list[Window]:
        try:
            return self._windows(tokens)
        except ValueError as error:
            raise ModelError(str(error)) from error

    def _windows(self, tokens: Tokens) -> list[Window]:
        spec = self.checkpoint
        if spec.pooling != "lmk":
            return plain_windows(
                tokens,
                pooling=spec.pooling,
                prefix=self.tokenizer.prefix,
                suffix=self.tokenizer.suffix,
                granularity=spec.granularity,
                window=self.window,
            )
        if self.tokenizer.cls is None or self.tokenizer.landmark is None:
            raise ModelError(
                f"{spec.base} has no CLS or BOS token, or neither SEP nor EOS, which landmark pooling needs: choose "
                "another model or pooling."
            )
        return landmark_windows(
            tokens,
            cls=self.tokenizer.cls,
            landmark=self.tokenizer.landmark,
            granularity=spec.granularity,
            window=self.window,
            closing=spec.closing_landmark,
        )

    def _embedding(
        self, tokens: int, layout: Sequence[Window], states: Sequence[WindowStates], prompt: int
    ) -> Embedding:
        pooled = torch.from_numpy(np.stack([state.pooled for state in states]))
        if self.pooling == "max":
            vector = pooled.amax(dim=0, keepdim=True)
        else:
            counts = torch.tensor([state.count for state in states])
            vector = mean_over_windows(pooled, counts, torch.zeros(len(states), dtype=torch.int64), 1)
        evidence = torch.from_numpy(np.concatenate([state.evidence for state in states]))
        spans = np.concatenate([window.spans for window in layout])
        read = sum(window.tokens for window in layout)
        return Embedding(
            vector=normalize(vector)[0].numpy(),
            evidence=normalize(evidence).numpy(),
            spans=np.maximum(spans - np.int32(prompt), 0),
            tokens=read,
            truncated=tokens - read,
        )


def _digest(folder: Path) -> str:
    """Hash the files of a model folder that decide its vectors."""
    paths = sorted(path for pattern in _DECIDING for path in folder.glob(pattern))
    listed = "".join(f"{path.name} {sha256_file(path)}\n" for path in paths)
    return hashlib.sha256(listed.encode()).hexdigest()
