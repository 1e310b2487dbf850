"""Folders of every kind give the vectors of their own definition."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.encoding.conftest import Load
from tests.encoding.folders import BOOLEANS, copied, edit, generation, own, sentence_transformer, stock4, write
from tests.encoding.reference import Reference, Vector, average, unit
from tests.encoding.texts import letters

TEXTS = ["One slice", letters(16, 1), letters(17, 2), letters(40, 3), letters(64, 4), letters(90, 5)]


def landmark_vector(
    reference: Reference, text: str, granularity: int, *, closing: bool = False, lmk: int = 3
) -> Vector:
    """Pool as the pull request's own code does, for a text that fits one window."""
    content = reference.tokenizer(text, add_special_tokens=False)["input_ids"]
    ids, wanted = [reference.cls], []
    for start in range(0, len(content), granularity):
        ids += content[start : start + granularity]
        wanted.append(len(ids))
        ids.append(lmk)
    if closing:
        assert reference.tokenizer(text)["input_ids"] == [reference.cls, *content, reference.sep]
        wanted.append(len(ids))
        ids.append(reference.sep)
    states = reference.states(ids)
    return unit(average([states[position] for position in wanted]))


GENERATIONS: dict[str, tuple[dict[str, Any], int, bool]] = {
    "A fixed": ({"splitter_type": "fixed", "splitter_granularity": 16, "lmk_token_id": 3}, 16, False),
    "A variable": ({"splitter_type": "variable", "splitter_granularity": [8, 16, 32], "lmk_token_id": 3}, 8, False),
    "B": (
        {"eval_splitter_granularity": 16, "train_splitter_granularity": [8, 32], "lmk_token_id": 3},
        16,
        False,
    ),
    "C": ({"landmark_interval": 16, "train_landmark_interval": [8, 32], "lmk_token_id": 3}, 16, True),
    "C without list": ({"landmark_interval": 12, "train_landmark_interval": None, "lmk_token_id": 3}, 12, True),
}


@pytest.mark.parametrize("name", GENERATIONS)
@pytest.mark.parametrize("normalize", [True, False])
def test_generations_of_the_pull_request(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path, name: str, normalize: bool
) -> None:
    settings, granularity, closing = GENERATIONS[name]
    folder = generation(tiny_bert, tmp_path / "model", {"max_seq_length": 128, **settings}, normalize=normalize)
    encoder = load(folder)
    assert (encoder.pooling, encoder.granularity, encoder.window) == ("lmk", granularity, 128)
    for text, found in zip(TEXTS, encoder.encode_documents(TEXTS), strict=True):
        wanted = landmark_vector(tiny_reference, text, granularity, closing=closing)
        np.testing.assert_allclose(found.vector, wanted, atol=1e-5)
        count = len("".join(text.split()))
        assert len(found.evidence) == len(found.spans) == -(-count // granularity)


def test_generation_c_pools_one_landmark_more(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    settings = {"landmark_interval": 32, "lmk_token_id": 3}
    encoder = load(generation(tiny_bert, tmp_path / "model", settings))
    found = encoder.encode_documents([letters(40)])[0]
    assert len(found.evidence) == 2
    of_slices = unit(average([each.astype(float) for each in found.evidence]))
    assert np.abs(found.vector - of_slices).max() > 1e-4  # the third landmark is in it


@pytest.mark.parametrize(
    ("key", "closing", "longest"), [("eval_splitter_granularity", False, 36), ("landmark_interval", True, 35)]
)
def test_a_text_that_fits_the_window_is_read_at_once(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path, key: str, closing: bool, longest: int
) -> None:
    # CLS, two slices of 16 with their landmarks, four letters and a landmark are 40 positions.
    folder = generation(tiny_bert, tmp_path / "model", {"max_seq_length": 40, key: 16, "lmk_token_id": 3})
    encoder = load(folder)
    for count in (32, 33, longest):
        text = letters(count, count)
        wanted = landmark_vector(tiny_reference, text, 16, closing=closing)
        np.testing.assert_allclose(encoder.encode_documents([text])[0].vector, wanted, atol=1e-5)


def test_the_landmark_that_a_folder_names(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path
) -> None:
    settings = {"eval_splitter_granularity": 16, "lmk_token_id": 4}
    encoder = load(generation(tiny_bert, tmp_path / "model", settings))
    for text in TEXTS:
        wanted = landmark_vector(tiny_reference, text, 16, lmk=4)
        np.testing.assert_allclose(encoder.encode_documents([text])[0].vector, wanted, atol=1e-5)


def peer(folder: Path) -> Any:
    """Load with sentence-transformers itself."""
    from sentence_transformers import SentenceTransformer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SentenceTransformer(str(folder), device="cpu")


def stock6(source: Path, target: Path, pooling: str, *, normalize: bool = True, prompts: Any = None) -> Path:
    """Have the installed sentence-transformers save a model."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.base.modules.normalize import Normalize
    from sentence_transformers.sentence_transformer.modules.pooling import Pooling

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [Transformer(str(source)), Pooling(32, pooling), *([Normalize()] if normalize else [])]
        SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(target), create_model_card=False)
    return target


@pytest.mark.parametrize("pooling", BOOLEANS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("version", [4, 6])
def test_stock_folders_give_what_sentence_transformers_gives(
    tiny_bert: Path, load: Load, tmp_path: Path, pooling: str, normalize: bool, version: int
) -> None:
    made = stock4 if version == 4 else stock6
    folder = made(tiny_bert, tmp_path / "model", pooling, normalize=normalize)
    encoder = load(folder)
    assert (encoder.pooling, encoder.window) == (pooling, 128)
    texts = ["", *TEXTS]
    wanted = peer(folder).encode(texts, normalize_embeddings=True)
    found = np.stack([each.vector for each in encoder.encode_documents(texts)])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_stock_folder_keeps_its_own_window(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path
) -> None:
    encoder = load(stock4(tiny_bert, tmp_path / "model", "mean", window=48))
    assert encoder.window == 48
    text = letters(120)
    wanted = tiny_reference.expect(text, "mean", window=48).vector
    np.testing.assert_allclose(encoder.encode_documents([text])[0].vector, wanted, atol=1e-5)


def test_a_window_beyond_the_positions_is_cut_to_them(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    encoder = load(stock4(tiny_bert, tmp_path / "model", "mean", window=4096))
    assert encoder.window == 128
    assert encoder.encode_documents([letters(500)])[0].tokens == 500


def test_a_stock_folder_that_lowers_case(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = stock4(tiny_bert, tmp_path / "model", "mean", lower=True)
    texts = ["UPPER and lower", "upper and lower"]
    wanted = peer(folder).encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(wanted[0], wanted[1], atol=1e-6)
    found = np.stack([each.vector for each in load(folder).encode_documents(texts)])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_real_base_as_sentence_transformers_reads_it(base_model: Path, load: Load) -> None:
    texts = ["A short query", "The river runs past the old stone house and into the sea. " * 10]
    wanted = peer(base_model).encode(texts, normalize_embeddings=True)
    found = np.stack([each.vector for each in load(base_model).encode_documents(texts)])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("version", [4, 6])
def test_prompts(tiny_bert: Path, load: Load, tmp_path: Path, version: int) -> None:
    prompts = {"query": "Query: ", "document": "Read this: "}
    made = stock4 if version == 4 else stock6
    folder = made(tiny_bert, tmp_path / "model", "mean", prompts=prompts)
    encoder, other = load(folder), peer(folder)
    documents = np.stack([each.vector for each in encoder.encode_documents(TEXTS)])
    queries = np.stack([each.vector for each in encoder.encode_queries(TEXTS)])
    np.testing.assert_allclose(documents, other.encode_document(TEXTS, normalize_embeddings=True), atol=1e-5)
    np.testing.assert_allclose(queries, other.encode_query(TEXTS, normalize_embeddings=True), atol=1e-5)
    assert np.abs(documents - queries).max() > 1e-3


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_every_name_of_the_document_prompt(
    tiny_bert: Path, tiny_reference: Reference, load: Load, tmp_path: Path, name: str
) -> None:
    encoder = load(stock4(tiny_bert, tmp_path / "model", "mean", prompts={name: "passage: "}))
    wanted = tiny_reference.expect("passage: some text", "mean", window=128).vector
    np.testing.assert_allclose(encoder.encode_documents(["some text"])[0].vector, wanted, atol=1e-5)


def test_spans_leave_the_prompt_out(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    folder = stock4(tiny_bert, tmp_path / "model", "mean", prompts={"document": "Read this: "})
    text = letters(60, 9)
    found = load(folder, granularity=4).encode_documents([text])[0]
    assert ((found.spans >= 0) & (found.spans <= len(text))).all()
    assert "".join("".join(text[start:end].split()) for start, end in found.spans) == "".join(text.split())


@pytest.fixture(scope="module")
def adapter(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Save an adapter whose weights are random in both halves; hand out the model that runs it unmerged, too."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModel

    base = AutoModel.from_pretrained(str(tiny_bert), dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by an old name
        model = get_peft_model(base, LoraConfig(r=4, lora_alpha=8, lora_dropout=0.1, target_modules=["query", "value"]))
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=draw))
    folder: Path = tmp_path_factory.mktemp("adapter")
    model.save_pretrained(str(folder))
    return folder, model.eval()


@pytest.mark.parametrize("pooling", ["lmk", "mean", "cls", "mcls"])
def test_our_own_folder_with_an_adapter(
    tiny_bert: Path, tiny_reference: Reference, load: Load, adapter: tuple[Path, Any], pooling: str
) -> None:
    folder, unmerged = adapter
    write(folder / "lmk_rag.json", {"base": str(tiny_bert), "pooling": pooling, "granularity": 16, "window": 64})
    encoder = load(folder)
    assert (encoder.pooling, encoder.granularity, encoder.window, encoder.notices) == (pooling, 16, 64, ())
    reference = Reference(tiny_bert, unmerged)
    for text, found in zip(TEXTS, encoder.encode_documents(TEXTS), strict=True):
        wanted = reference.expect(text, pooling, granularity=16, window=64).vector
        np.testing.assert_allclose(found.vector, wanted, atol=1e-5)
        plain = tiny_reference.expect(text, pooling, granularity=16, window=64).vector
        assert np.abs(found.vector - plain).max() > 1e-3  # the adapter does something


def test_a_base_named_relative_to_the_folder(
    tiny_bert: Path, load: Load, adapter: tuple[Path, Any], tmp_path: Path
) -> None:
    copied(tiny_bert, tmp_path / "base")
    for path in adapter[0].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    write(tmp_path / "lmk_rag.json", {"base": "base", "pooling": "mean", "granularity": 32, "window": 128})
    wanted = Reference(tiny_bert, adapter[1]).expect(TEXTS[3], "mean", window=128).vector
    np.testing.assert_allclose(load(tmp_path).encode_documents([TEXTS[3]])[0].vector, wanted, atol=1e-5)


def special_tokenizer(vocabulary: list[str], before: list[str], after: list[str], **named: str) -> Any:
    """Make a tokenizer that reads a letter a token, with special tokens of our choice."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    letter = pre_tokenizers.Split(Regex(r"\S"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), letter])
    used = [(piece, numbers[piece]) for piece in {*before, *after}]
    if used:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join([*before, "$A", *after]), special_tokens=used
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", **named)


LETTERS = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random RoBERTa of 42 position rows, the first two of which no token uses."""
    from transformers import RobertaConfig, RobertaModel

    folder = tmp_path_factory.mktemp("roberta")
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *LETTERS]
    config = RobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=42,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        type_vocab_size=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = RobertaModel(config).eval()
    model.save_pretrained(folder)
    named = {"cls_token": "<s>", "bos_token": "<s>", "sep_token": "</s>", "eos_token": "</s>", "pad_token": "<pad>"}
    special_tokenizer(vocabulary, ["<s>"], ["</s>"], **named).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("pooling", ["lmk", "mean", "lasttoken"])
def test_positions_that_start_behind_the_padding(roberta: Path, load: Load, tmp_path: Path, pooling: str) -> None:
    encoder = load(own(roberta, tmp_path / "own", pooling, granularity=8))
    assert encoder.window == 40  # 42 - 2
    reference = Reference(roberta)
    texts = [letters(length, length) for length in (0, 5, 8, 35, 38, 39, 100)]
    for text, found in zip(texts, encoder.encode_documents(texts), strict=True):
        wanted = reference.expect(text, pooling, granularity=8, window=40).vector
        np.testing.assert_allclose(found.vector, wanted, atol=1e-5)


def test_eos_and_bos_stand_in_for_sep_and_cls(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    copied(tiny_bert, tmp_path / "model")
    vocabulary = ["<pad>", "<unk>", "<s>", "</s>", *LETTERS]
    named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    special_tokenizer(vocabulary, ["<s>"], ["</s>"], **named).save_pretrained(tmp_path / "model")
    edit(tmp_path / "model" / "tokenizer_config.json", model_max_length=64)
    encoder = load(tmp_path / "model", pooling="lmk", granularity=32)
    reference = Reference(tmp_path / "model")
    assert (reference.cls, reference.sep, encoder.window) == (2, 3, 64)
    text = letters(90, 1)
    wanted = reference.expect(text, "lmk", granularity=32, window=64).vector
    np.testing.assert_allclose(encoder.encode_documents([text])[0].vector, wanted, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "lasttoken"])
def test_an_empty_text_where_the_tokenizer_adds_nothing(
    tiny_bert: Path, load: Load, tmp_path: Path, pooling: str
) -> None:
    copied(tiny_bert, tmp_path / "model")
    named = {"eos_token": "</s>", "pad_token": "<pad>"}
    made = special_tokenizer(["<pad>", "<unk>", "</s>", *LETTERS], [], [], **named)
    made.save_pretrained(tmp_path / "model")
    empty, text = load(tmp_path / "model", pooling=pooling).encode_documents(["", "some text"])
    assert np.isfinite(empty.vector).all()
    assert empty.tokens == 0
    assert text.tokens == 8


def test_pooling_modes_in_a_list_of_one(tiny_bert: Path, load: Load, tmp_path: Path) -> None:
    told = {"pooling_mode": ["cls"], "embedding_dimension": 32}
    assert load(sentence_transformer(tiny_bert, tmp_path / "model", told, {})).pooling == "cls"
