"""A folder or a name becomes a checkpoint: base weights, adapter, pooling, granularity, window.

Six kinds are told apart by the files in them: our own (``lmk_rag.json``), the three generations of
sentence-transformers pull request 3642, stock sentence-transformers folders, and bare Hugging Face folders.
"""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmk_rag.encoding.base_model import HUB_NAME, ModelError, base_model, is_original

logger = logging.getLogger(__name__)

POOLINGS = ("lmk", "mean", "cls", "mcls", "lasttoken", "max")
SHIPPED = Path(__file__).parent.parent / "models"
"""The adapters that come with the package, a folder a pooling."""

_DEFAULT_GRANULARITY = 32
_ST_POOLINGS = {
    "pooling_mode_lmk": "lmk",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_max_tokens": "max",
}
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_ADAPTER_OF = {"mcls": "cls"}
"""A pooling that shares another's adapter: mcls is the cls adapter pooled over all windows."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What has to be known to turn a text into a vector with a given model.

    Attributes:
        model: the name or path that the user gave; it loads the same checkpoint again.
        base: folder or hub name of weights and tokenizer.
        adapter: folder of a PEFT adapter on that base, if any.
        pooling: one of :data:`POOLINGS`.
        granularity: content tokens a slice.
        window: positions that the model reads at once; None means as many as the model has.
        landmark: token id of the landmark; None means the tokenizer's SEP, or EOS.
        lowercase: texts are lower-cased first, whatever the tokenizer does (``do_lower_case``).
        closing_landmark: each window ends with one landmark more (generation C).
        query_prompt: text put before each query.
        document_prompt: text put before each document.
        notices: what the user should be told about this choice, one sentence each.
    """

    model: str
    base: str
    adapter: Path | None = None
    pooling: str = "mean"
    granularity: int = _DEFAULT_GRANULARITY
    window: int | None = None
    landmark: int | None = None
    lowercase: bool = False
    closing_landmark: bool = False
    query_prompt: str = ""
    document_prompt: str = ""
    notices: tuple[str, ...] = ()


def resolve(model: str = "default", pooling: str | None = None, granularity: int | None = None) -> Checkpoint:
    """Find out what ``model`` is and how it pools.

    Args:
        model: ``default``, a folder, or a name on the hub.
        pooling: one of :data:`POOLINGS`, None for the checkpoint's own.
        granularity: content tokens a slice, None for the checkpoint's own.

    Raises:
        ModelError: where nothing can be made of ``model``, or a bare model comes without a pooling.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise ModelError(f"Pooling {pooling!r} is not known: choose one of {', '.join(POOLINGS)}.")
    if granularity is not None and granularity < 1:
        raise ModelError(f"The granularity must be at least 1 token, not {granularity}.")
    found = _default(pooling) if model == "default" else _named(model, pooling, granularity)
    told = []
    if granularity is not None and granularity != found.granularity:
        if found.pooling == "lmk" and pooling in (None, "lmk"):
            told.append(f"{model} was made for granularity {found.granularity} and is used with {granularity}.")
        found = replace(found, granularity=granularity)
    if pooling is not None and pooling != found.pooling:
        told.append(
            f"{model} was trained for {found.pooling} pooling and is used with {pooling}: expect worse results."
        )
        found = replace(found, pooling=pooling, closing_landmark=False)
    return replace(found, notices=(*found.notices, *told))


def shipped_poolings() -> list[str]:
    """List the poolings whose trained adapters come with the package."""
    return [name for name in POOLINGS if (SHIPPED / _ADAPTER_OF.get(name, name) / "lmk_rag.json").is_file()]


def _default(pooling: str | None) -> Checkpoint:
    base = Checkpoint(model="default", base=_base_folder(), pooling="mean", window=512)
    wanted = pooling or "lmk"
    if not is_original(base.base):
        told = "The shipped adapters do not fit the base of LMK_RAG_BASE: it is used with its own mean pooling."
        return base if pooling else replace(base, notices=(told,))
    if wanted not in shipped_poolings():
        return base
    adapter = SHIPPED / _ADAPTER_OF.get(wanted, wanted)
    return replace(_ours(adapter, "default"), pooling=wanted)


def _base_folder() -> str:
    found = base_model()
    if found != HUB_NAME:
        return found
    logger.warning("The base model is not installed: fetching %s from the hub.", HUB_NAME)
    return str(_from_hub(HUB_NAME))


def _named(model: str, pooling: str | None, granularity: int | None) -> Checkpoint:
    folder = Path(model).expanduser()
    if folder.is_dir():
        model = str(folder.absolute())  # so that it is found again from another folder
    else:
        folder = _from_hub(model)
    if (folder / "lmk_rag.json").is_file():
        return _ours(folder, model)
    if (folder / "modules.json").is_file():
        return _sentence_transformers(folder, model)
    if (folder / "config.json").is_file():
        return _bare(folder, model, pooling, granularity)
    raise ModelError(
        f"{folder} holds neither modules.json nor config.json nor lmk_rag.json: name a folder with a model in it."
    )


def _from_hub(model: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(model, ignore_patterns=["*.onnx", "*.bin", "*.h5", "*.msgpack", "*.ot"]))
    except HFValidationError as error:
        raise ModelError(f"There is no model folder {model}: check the path.") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"There is no model folder {model}, and the hub did not give it either ({type(error).__name__}): check "
            "the name, or download the model and name its folder."
        ) from error


def _ours(folder: Path, model: str) -> Checkpoint:
    path = folder / "lmk_rag.json"
    told = _json(path)
    base = str(told.get("base", "default"))
    adapter = folder if (folder / "adapter_config.json").is_file() else None
    if adapter is None:
        base = str(folder)
    elif base == "default":
        base = _base_folder()
    elif (folder / base).is_dir():  # relative to the adapter, or absolute
        base = str(folder / base)
    else:
        base = str(_from_hub(base))
    return Checkpoint(
        model=model,
        base=base,
        adapter=adapter,
        pooling=_known_pooling(told.get("pooling"), path),
        granularity=_count(told.get("granularity"), path, "granularity") or _DEFAULT_GRANULARITY,
        window=_count(told.get("window"), path, "window"),
    )


def _bare(folder: Path, model: str, pooling: str | None, granularity: int | None) -> Checkpoint:
    missing = [
        option
        for option, value in (("pooling", pooling), ("granularity", granularity))
        if value is None and not (option == "granularity" and pooling not in (None, "lmk"))
    ]
    if missing:
        raise ModelError(
            f"{folder} is a bare model, which does not say how it pools: give {' and '.join(missing)}, "
            "for example pooling lmk and granularity 32."
        )
    return Checkpoint(
        model=model, base=str(folder), pooling=pooling or "mean", granularity=granularity or _DEFAULT_GRANULARITY
    )


def _sentence_transformers(folder: Path, model: str) -> Checkpoint:
    modules: dict[str, Path] = {}
    for entry in _json(folder / "modules.json", kind=list):
        if not isinstance(entry, dict) or "type" not in entry:
            raise ModelError(f"{folder / 'modules.json'} lists {entry!r}, which names no type of module.")
        modules[str(entry["type"]).rsplit(".", 1)[-1]] = folder / str(entry.get("path", ""))
    foreign = set(modules) - {"Transformer", "LandmarkTransformer", "Pooling", "Normalize"}
    if foreign or not {"Transformer", "LandmarkTransformer"} & set(modules) or "Pooling" not in modules:
        raise ModelError(
            f"{folder} has the modules {', '.join(modules)}: only Transformer or LandmarkTransformer, Pooling and "
            "Normalize are understood; choose a model made of these."
        )
    weights = modules.get("LandmarkTransformer") or modules["Transformer"]
    settings = _json(weights / "sentence_bert_config.json", default={})
    prompts = _json(folder / "config_sentence_transformers.json", default={}).get("prompts") or {}
    generation = _landmark_settings(settings, weights / "sentence_bert_config.json")
    return Checkpoint(
        model=model,
        base=str(weights),
        pooling="lmk" if "LandmarkTransformer" in modules else _st_pooling(modules["Pooling"] / "config.json"),
        window=_count(settings.get("max_seq_length"), weights / "sentence_bert_config.json", "max_seq_length"),
        lowercase=bool(settings.get("do_lower_case")),
        query_prompt=prompts.get("query") or "",
        document_prompt=next((prompts[name] for name in _DOCUMENT_PROMPTS if prompts.get(name)), ""),
        **generation,
    )


def _landmark_settings(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """Read the landmark settings of generations A, B and C of pull request 3642."""
    for key, closing in (
        ("splitter_granularity", False),
        ("eval_splitter_granularity", False),
        ("landmark_interval", True),
    ):
        if key in settings:
            value = settings[key]
            # Generation A's "variable" draws an interval at random even at inference: its first is taken.
            granularity = _count(value[0] if isinstance(value, list) and value else value, path, key)
            if granularity is None:
                raise ModelError(f"{path} gives no {key}: name the tokens a landmark closes.")
            return {
                "granularity": granularity,
                "landmark": settings.get("lmk_token_id"),
                "closing_landmark": closing,
            }
    return {}


def _st_pooling(path: Path) -> str:
    told = _json(path)
    mode = told.get("pooling_mode")
    modes = [mode] if isinstance(mode, str) else list(mode or [])
    if not modes:
        modes = [_ST_POOLINGS.get(key, key) for key, on in told.items() if key.startswith("pooling_mode_") and on]
    if len(modes) != 1:
        raise ModelError(f"{path} asks for the poolings {modes}: exactly one is understood.")
    return _known_pooling(modes[0], path)


def _known_pooling(pooling: object, path: Path) -> str:
    if pooling not in POOLINGS:
        raise ModelError(f"{path} asks for pooling {pooling!r}: {', '.join(POOLINGS)} are understood.")
    return str(pooling)


def _count(value: object, path: Path, name: str) -> int | None:
    """Read a number of tokens that may be left out."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ModelError(f"{path} gives {name} {value!r}: it must be a whole number of tokens, at least 1.")
    return value


def _json(path: Path, default: dict[str, Any] | None = None, kind: type = dict) -> Any:  # noqa: ANN401
    if default is not None and not path.is_file():
        return default
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}): download the model again.") from error
    if not isinstance(found, kind):
        raise ModelError(
            f"{path} holds a JSON {type(found).__name__}, not a {kind.__name__}: download the model again."
        )
    return found
