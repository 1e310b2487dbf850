"""``lmk-rag export``: what the folder holds, who loads it, and what is refused."""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from peft import LoraConfig, get_peft_model
from sentence_transformers import SentenceTransformer
from transformers import AutoModel
from typer.testing import CliRunner

from lmk_rag import export as exporting
from lmk_rag.cli import app
from lmk_rag.encoding.base_model import ModelError, ModelWarning
from lmk_rag.encoding.checkpoints import POOLINGS
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.export import export
from tests.encoding.folders import copied, generation, stock4

TEXTS = [
    "",
    "a",
    "The river runs.",
    " ".join(f"word{number}" for number in range(60)),
    " ".join(f"another{number}" for number in range(300)),  # many windows of 64
    "[SEP] typed by hand [SEP] " * 20,
    "half of a pair: \ud83d",
]


def loaded(folder: Path, **told: Any) -> Encoder:
    return Encoder.load(str(folder), **{"device": "cpu", "dtype": "float32", **told})


def peer(folder: Path, **told: Any) -> SentenceTransformer:
    # The code that is trusted is this package's own: the folder, which the test made, holds none.
    return SentenceTransformer(str(folder), trust_remote_code=True, device="cpu", **told)


def vectors(encoder: Encoder, texts: list[str] = TEXTS) -> npt.NDArray[np.float32]:
    return np.stack([each.vector for each in encoder.encode_documents(texts)])


def adapter(weights: Path, target: Path, **told: Any) -> Path:
    """A random adapter on a base, as training leaves it."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
        torch.manual_seed(1)
        settings = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False)
        get_peft_model(AutoModel.from_pretrained(weights), settings).save_pretrained(str(target))
    (target / "README.md").unlink()  # peft's form to fill in, which training does not leave
    about = {"base": str(weights), "pooling": "lmk", "granularity": 8, "window": 64, **told}
    (target / "lmk_rag.json").write_text(json.dumps(about), encoding="utf-8")
    return target


@pytest.fixture(scope="session")
def tiny_adapter(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return adapter(tiny_bert, tmp_path_factory.mktemp("adapter") / "lmk")


@pytest.fixture(scope="session")
def exported(tiny_adapter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "model"
    export(str(tiny_adapter), folder)
    return folder


@pytest.fixture(params=POOLINGS)
def each_pooling(request: pytest.FixtureRequest, tiny_adapter: Path, tmp_path: Path) -> Iterator[tuple[Encoder, Path]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # trained for lmk
        export(str(tiny_adapter), tmp_path / "model", request.param)
        yield loaded(tiny_adapter, pooling=request.param), tmp_path / "model"


def test_sentence_transformers_gives_our_vectors(each_pooling: tuple[Encoder, Path]) -> None:
    encoder, folder = each_pooling
    wanted = vectors(encoder)
    model = peer(folder)
    np.testing.assert_allclose(model.encode(TEXTS), wanted, atol=1e-5)
    np.testing.assert_allclose(model.encode_document(TEXTS, batch_size=2), wanted, atol=1e-5)
    np.testing.assert_allclose(model.encode_query(TEXTS, batch_size=1), wanted, atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS[4]), wanted[4], atol=1e-5)


def test_the_encoder_loads_it_with_the_settings_and_without_the_adapter(each_pooling: tuple[Encoder, Path]) -> None:
    encoder, folder = each_pooling
    again = loaded(folder)
    assert again.checkpoint.adapter is None
    assert again.notices == ()
    assert (again.pooling, again.granularity, again.window) == (encoder.pooling, 8, 64)
    np.testing.assert_allclose(vectors(again), vectors(encoder), atol=1e-6)


def test_the_adapter_is_in_the_weights(tiny_bert: Path, exported: Path) -> None:
    before = AutoModel.from_pretrained(tiny_bert).get_parameter("encoder.layer.0.output.dense.weight")
    after = AutoModel.from_pretrained(exported, dtype="auto").get_parameter("encoder.layer.0.output.dense.weight")
    assert after.dtype == torch.float32
    assert not torch.allclose(before, after, atol=1e-3)
    assert not list(exported.glob("adapter*"))


def test_batches_are_split_by_positions(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = peer(exported).encode(TEXTS)
    monkeypatch.setattr("lmk_rag.landmark_transformer._POSITIONS", 100)  # one window of 64, or a few short ones
    np.testing.assert_allclose(peer(exported).encode(TEXTS), wanted, atol=1e-6)


def test_saved_by_sentence_transformers_it_loads_again(exported: Path, tmp_path: Path) -> None:
    model = peer(exported)
    model.save(str(tmp_path / "again"))
    np.testing.assert_allclose(peer(tmp_path / "again").encode(TEXTS), model.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(vectors(loaded(tmp_path / "again")), model.encode(TEXTS), atol=1e-5)
    for name in ("README.md", "modules.json"):
        left, right = ((folder / name).read_text(encoding="utf-8").split() for folder in (exported, tmp_path / "again"))
        assert left == right
    with pytest.raises(ValueError, match="safetensors"):
        model.save(str(tmp_path / "pickled"), safe_serialization=False)


def test_it_is_a_sentence_transformer_in_every_respect(exported: Path) -> None:
    model = peer(exported)
    assert model.get_embedding_dimension() == 32
    assert model.similarity_fn_name == "cosine"
    found = model.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(model.similarity(found, found).numpy(), found @ found.T, atol=1e-5)
    prompted = vectors(loaded(exported), ["query: a river"])
    np.testing.assert_allclose(model.encode(["a river"], prompt="query: "), prompted, atol=1e-5)
    with pytest.raises(ValueError, match="strings, not a tuple"):
        model.encode([("a", "pair")])


def test_max_seq_length_cuts_as_max_tokens_does(exported: Path) -> None:
    model = peer(exported)
    assert model.max_seq_length is None
    model.max_seq_length = 100
    np.testing.assert_allclose(model.encode(TEXTS), vectors(loaded(exported, max_tokens=100)), atol=1e-5)
    with pytest.raises(ValueError, match="not 0"):
        model.max_seq_length = 0


def test_gradients_reach_every_layer(exported: Path) -> None:
    model = peer(exported)
    out = model(model.preprocess(["a river", "b " * 200]))["sentence_embedding"]
    (out[0] @ out[1]).backward()
    unused = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert unused == []


def test_options_of_loading(exported: Path, tmp_path: Path, tiny_bert: Path) -> None:
    for dtype in ("bfloat16", torch.bfloat16):
        assert peer(exported, model_kwargs={"dtype": dtype}).dtype == torch.bfloat16
    assert peer(exported, model_kwargs={"dtype": "auto"}).dtype == torch.float32
    for told in (
        {"model_kwargs": {"attn_implementation": "eager"}},
        {"processor_kwargs": {"a": 1}},
        {"backend": "onnx"},
    ):
        with pytest.raises(ModelError, match="does not understand"):
            peer(exported, **told)
    copied(tiny_bert, tmp_path / "other")
    (tmp_path / "other" / "modules.json").write_text((exported / "modules.json").read_text(encoding="utf-8"))
    with pytest.raises(ModelError, match=r"holds no lmk_rag\.json"):
        peer(tmp_path / "other")


def test_without_the_flag_sentence_transformers_refuses(exported: Path) -> None:
    # the library's own rule, which the card and the docs tell: without it no class of another package is imported
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(exported), device="cpu")


def test_the_card_tells_what_it_is_and_no_path_of_this_machine(
    exported: Path, tiny_bert: Path, tiny_adapter: Path, tmp_path: Path
) -> None:
    card = (exported / "README.md").read_text(encoding="utf-8")
    assert "slices of 8 tokens" in card
    assert "trust_remote_code=True" in card  # it does not load without
    assert "No code lies in this folder" in card  # and why that is safe
    assert 'license: "other"' in card  # the licence of a base that is not ours is not known
    for path in exported.iterdir():
        content = path.read_bytes()
        assert str(tiny_bert).encode() not in content, path
        assert str(tiny_adapter).encode() not in content, path
    told = adapter(tiny_bert, tmp_path / "told")
    (told / "README.md").write_text("Trained on rivers.", encoding="utf-8")
    export(str(told), tmp_path / "model")
    assert (tmp_path / "model" / "ADAPTER.md").read_text(encoding="utf-8") == "Trained on rivers."
    assert "ADAPTER.md" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_everything_in_it_is_readable_as_far_as_the_first_file_is(exported: Path) -> None:
    assert len({path.stat().st_mode for path in exported.iterdir()}) == 1


def test_foreign_folders(tiny_bert: Path, tmp_path: Path) -> None:
    export(str(stock4(tiny_bert, tmp_path / "stock", "mean", window=64)), tmp_path / "mean")
    np.testing.assert_allclose(peer(tmp_path / "mean").encode(TEXTS), vectors(loaded(tmp_path / "stock")), atol=1e-5)
    a = generation(tiny_bert, tmp_path / "a", {"splitter_granularity": 16, "max_seq_length": 64})
    export(str(a), tmp_path / "lmk")
    np.testing.assert_allclose(peer(tmp_path / "lmk").encode(TEXTS), vectors(loaded(a)), atol=1e-5)


@pytest.mark.parametrize("what", ["closing_landmark", "prompts", "tokenizer"])
def test_what_the_folder_could_not_say_is_refused(tiny_bert: Path, tmp_path: Path, what: str) -> None:
    model = {
        "closing_landmark": lambda: generation(tiny_bert, tmp_path / "c", {"landmark_interval": 16}),
        "prompts": lambda: stock4(tiny_bert, tmp_path / "p", "mean", prompts={"query": "query: "}),
        "tokenizer": lambda: stock4(tiny_bert, tmp_path / "l", "mean", lower=True),
    }[what]()
    with pytest.raises(ModelError, match=f"cannot be exported: its setting {what}") as refused:
        export(str(model), tmp_path / "out" / "model")
    assert len(str(refused.value)) < 400
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_holds_something_is_left_alone(tiny_adapter: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    for taken in (tmp_path / "full", tmp_path / "full" / "mine.txt"):
        with pytest.raises(ModelError, match="not an empty folder"):
            export(str(tiny_adapter), taken)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    export(str(tiny_adapter), tmp_path / "empty")
    assert (tmp_path / "empty" / "lmk_rag.json").is_file()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_export_leaves_nothing(
    tiny_adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    seen: list[str] = []

    def interrupt(_: Encoder, name: str) -> str:
        seen.extend(path.name for path in tmp_path.rglob("*.safetensors"))
        raise error(name)

    monkeypatch.setattr(exporting, "_card", interrupt)
    with pytest.raises(error):
        export(str(tiny_adapter), tmp_path / "model")
    assert seen == ["model.safetensors"]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def run(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    return lambda *arguments: CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_the_command(run: Callable[..., Any], tiny_adapter: Path, tmp_path: Path) -> None:
    result = run(tiny_adapter, tmp_path / "a")
    assert result.exit_code == 0, result.output
    assert "lmk pooling, granularity 8, window 64" in result.stdout
    assert "trust_remote_code=True" in result.stdout  # it does not load without
    assert result.stderr == ""
    result = run("default", tmp_path / "b", "--pooling", "mcls")
    assert result.exit_code == 0, result.output
    assert "mcls" in result.stderr  # the notice that it was trained for another
    np.testing.assert_allclose(peer(tmp_path / "b").encode(TEXTS), vectors(loaded(tmp_path / "b")), atol=1e-5)
    for arguments in (
        (tiny_adapter, tmp_path / "a"),
        (tmp_path / "none", tmp_path / "c"),
        ("default", tmp_path / "c", "--pooling", "x"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
        assert isinstance(result.exception, SystemExit)
    assert not (tmp_path / "c").exists()


def test_on_the_real_base(base_model: Path, repository: Path, tmp_path: Path) -> None:
    trained = adapter(base_model, tmp_path / "adapter", base="default", granularity=32, window=512)
    export(str(trained), tmp_path / "model")
    text = (repository / "LICENSE").read_text(encoding="utf-8")  # five windows
    texts = ["", "What may be done with the work?", text, text[:3000], text[5000:8000], "日本語 und Ελληνικά"]
    wanted = vectors(loaded(trained), texts)
    np.testing.assert_allclose(peer(tmp_path / "model").encode_document(texts), wanted, atol=1e-5)
    np.testing.assert_allclose(vectors(loaded(tmp_path / "model"), texts), wanted, atol=1e-5)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert 'license: "apache-2.0"' in card
    assert 'base_model: "sentence-transformers/all-MiniLM-L6-v2"' in card
