"""The encoder as a module of sentence-transformers: what ``modules.json`` of an exported folder names.

``SentenceTransformer(folder, trust_remote_code=True)`` imports it, because it is installed; the flag is needed for
every class from outside sentence-transformers (6.0 and later), a local folder's too.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sentence_transformers.base.modules import InputModule
from torch import Tensor
from transformers import AutoTokenizer

from lmk_rag.encoding.base_model import ModelError
from lmk_rag.encoding.batching import batches_by_tokens
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.encoding.network import forward
from lmk_rag.encoding.pooling import mean_over_windows, normalize, pooled_maxima, pooled_sums
from lmk_rag.export import settings, write_network

_POSITIONS = 16_384
"""Positions read at once: a batch of long documents has more windows than memory has room for."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class LandmarkTransformer(InputModule):
    """Texts of any length to one vector each: windows, states, pooling and normalisation in one module.

    It gives what :class:`lmk_rag.encoding.encoder.Encoder` gives for the same folder. Gradients flow through it.

    Attributes:
        encoder: the encoder whose settings and network it uses.
        network: the transformer.
        tokenizer: the tokenizer as transformers knows it.
    """

    config_file_name = "lmk_rag.json"

    def __init__(self, encoder: Encoder) -> None:
        """Take an encoder; :meth:`load` is the usual way."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.encoder = encoder
        self.network = encoder.network.requires_grad_(True)
        self.tokenizer = AutoTokenizer.from_pretrained(encoder.checkpoint.base)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        init_defaults: dict[str, Any] | None = None,
        *,
        model_kwargs: dict[str, Any] | None = None,
        processor_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        backend: str = "torch",
        **_: object,
    ) -> Self:
        """Load an exported folder, or a repository on the hub that holds one.

        Args:
            model_name_or_path: the folder, or the name on the hub.
            subfolder: where in it the module lies.
            token: for the hub.
            cache_folder: for the hub.
            revision: for the hub.
            local_files_only: ask the hub for nothing.
            init_defaults: not used, the folder says all.
            model_kwargs: ``dtype`` (or ``torch_dtype``), float32 unless given.
            processor_kwargs: none are understood.
            config_kwargs: none are understood.
            backend: torch.

        Raises:
            ModelError: where there is no such folder, it cannot be loaded, or an option is not understood.
        """
        options = dict(model_kwargs or {})
        dtype = options.pop("dtype", None) or options.pop("torch_dtype", None) or "float32"
        unknown = [*options, *(processor_kwargs or {}), *(config_kwargs or {})]
        if unknown or backend != "torch":
            named = ", ".join(unknown) or f"backend {backend}"
            raise ModelError(
                f"A landmark transformer does not understand {named}: give dtype alone, and backend torch."
            )
        folder = cls.load_dir_path(
            model_name_or_path,
            subfolder=subfolder,
            token=token,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
        )
        if folder is None or not Path(folder, cls.config_file_name).is_file():
            raise ModelError(f"{model_name_or_path} holds no {cls.config_file_name}: name a folder of lmk-rag export.")
        named = str(dtype).removeprefix("torch.")
        return cls(Encoder.load(folder, device="cpu", dtype="float32" if named == "auto" else named))

    def get_embedding_dimension(self) -> int:
        """Give the length of a vector."""
        return self.encoder.dimension

    def get_config_dict(self) -> dict[str, Any]:
        """Tell what ``lmk_rag.json`` says: pooling, granularity, window."""
        return settings(self.encoder)

    @property
    def max_seq_length(self) -> int | None:
        """Content tokens read of each text; None, as loaded, for all of them. It is not saved."""
        return self.encoder.max_tokens

    @max_seq_length.setter
    def max_seq_length(self, tokens: int | None) -> None:
        if tokens is not None and tokens < 1:
            raise ValueError(f"max_seq_length must be at least 1, or None for whole texts, not {tokens}.")
        self.encoder.max_tokens = tokens

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: object) -> dict[str, Tensor]:
        """Lay texts out in windows.

        Args:
            inputs: any strings.
            prompt: put before each.

        Returns:
            ``input_ids`` int64, ``attention_mask`` bool and ``pooled`` bool, all (windows, length), and
            ``documents`` int64 (windows,): which text each window is of, 0 <= document < number of texts.

        Raises:
            ValueError: where an input is not a string.
        """
        strange = next((each for each in inputs if not isinstance(each, str)), None)
        if strange is not None:
            raise ValueError(f"A landmark transformer reads strings, not a {type(strange).__name__}: give one a text.")
        readable = [(prompt or "") + _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text) for text in inputs]
        tokens = self.encoder.tokenizer.tokens(readable)
        layouts = [self.encoder._layout(each[: self.max_seq_length]) for each in tokens]
        windows = [window for layout in layouts for window in layout]
        lengths = np.array([len(window) for window in windows])
        ids = np.full((len(windows), lengths.max()), self.encoder.tokenizer.pad, dtype=np.int64)
        pooled = np.zeros(ids.shape, dtype=bool)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window.ids
            pooled[row, window.pooled] = True
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(np.arange(ids.shape[1]) < lengths[:, None]),
            "pooled": torch.from_numpy(pooled),
            "documents": torch.arange(len(layouts)).repeat_interleave(torch.tensor([len(each) for each in layouts])),
        }

    def forward(self, features: dict[str, Tensor], **_: object) -> dict[str, Tensor]:
        """Add ``sentence_embedding``, float32 (texts, d), each of length 1, to what :meth:`preprocess` gave."""
        documents = features["documents"]
        lengths = features["attention_mask"].sum(dim=1).tolist()
        read, sums, counts, maxima = [], [], [], []
        for batch in batches_by_tokens(lengths, _POSITIONS):
            rows, longest = torch.tensor(batch, device=documents.device), lengths[batch[0]]
            ids, mask, pooled = (features[name][rows, :longest] for name in ("input_ids", "attention_mask", "pooled"))
            hidden = forward(self.network, ids, None if bool(mask.all()) else mask)
            read.append(documents[rows])
            if self.encoder.pooling == "max":
                maxima.append(pooled_maxima(hidden, pooled))
            else:
                total, count = pooled_sums(hidden, pooled)
                sums.append(total)
                counts.append(count)
        texts = int(documents.max()) + 1
        if self.encoder.pooling == "max":
            vectors = _largest(torch.cat(maxima), torch.cat(read), texts)
        else:
            vectors = mean_over_windows(torch.cat(sums), torch.cat(counts), torch.cat(read), texts)
        return {**features, "sentence_embedding": normalize(vectors)}

    def save(self, output_path: str, *args: object, safe_serialization: bool = True, **kwargs: object) -> None:
        """Write weights, tokenizer and ``lmk_rag.json``; ``SentenceTransformer.save`` writes the rest.

        Raises:
            ValueError: where weights are to be pickled.
        """
        if not safe_serialization:
            raise ValueError("A landmark transformer is saved as safetensors alone: leave safe_serialization on.")
        write_network(self.network, Path(output_path))
        self.save_tokenizer(output_path)
        self.save_config(output_path)


def _largest(maxima: Tensor, documents: Tensor, n: int) -> Tensor:
    """Take the largest value a dimension over the windows of each document, float32 (n, d)."""
    found = maxima.new_full((n, maxima.shape[1]), -torch.inf)
    return found.scatter_reduce(0, documents.unsqueeze(1).expand_as(maxima), maxima, "amax")
