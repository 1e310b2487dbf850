"""Documents removed, marked to be read anew, and embedded by another pooling."""

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from indexes.collection import Collection
from indexes.errors import CollectionError, LockedError
from indexes.listing import token_counts
from ingest.pipeline import Options, Progress, ingest
from lmk_rag.indexing import Settings, load_encoder
from lmk_rag.langchain import LMKVectorStore
from lmk_rag.search import Searcher
from lmk_rag.upkeep import add_pooling, embed_anew, mark_changed, remove

Make = Callable[..., Collection]
pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")


class Told(Progress):
    """What was told of: documents and code points, all and done, and positions."""

    def __init__(self) -> None:
        self.all = self.done = (0, 0)
        self.positions = 0

    def start(self, files: int, size: int) -> None:
        self.all = (files, size)

    def tokens(self, count: int) -> None:
        self.positions += count

    def finished(self, files: int, size: int) -> None:
        self.done = (self.done[0] + files, self.done[1] + size)


def test_what_is_removed_is_found_no_more(make_collection: Make) -> None:
    collection = make_collection(["whales sing", "iron rusts"])
    first = collection.find("/0.txt")
    assert first is not None
    assert remove(collection, [first.id, 999]) == 1
    assert [hit.path for hit in Searcher(collection).search("whales").hits] == ["/1.txt"]
    assert not collection.verify()


def test_nothing_is_removed_while_another_writes(make_collection: Make) -> None:
    collection = make_collection(["whales sing"])
    with Collection.open(collection.path) as other, other.write("ingest"), pytest.raises(LockedError, match="ingest"):
        remove(collection, [1])
    assert collection.count() == 1


def test_a_marked_document_is_read_anew_and_a_gone_one_kept(
    tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    kept, gone = tmp_path / "kept.txt", tmp_path / "gone.txt"
    kept.write_text("Whales sing.")
    gone.write_text("Iron rusts.")
    options = Options(poolings=("mean",), workers=0)
    ingest([kept, gone], tmp_path / "collection", options)
    gone.unlink()
    with Collection.open(tmp_path / "collection") as collection:
        ids = [document.id for document in collection.documents()]
        assert mark_changed(collection, [*ids, 999]) == [kept]
    report = ingest([kept], tmp_path / "collection", options)
    assert (report.updated, report.unchanged, report.documents) == (1, 0, 2)


def test_another_pooling_is_added_and_equals_one_made_at_once(make_collection: Make) -> None:
    texts = ["whales sing in the sea", "iron rusts in wet air"]
    collection = make_collection(texts)
    told = Told()
    assert add_pooling(collection, "lmk", progress=told) == 2
    assert told.positions > 0
    characters = sum(map(len, texts))
    assert (told.all, told.done) == ((2, characters), (2, characters))
    record = collection.encoder("lmk")
    assert record is not None
    assert collection.missing(record.id) == []
    made = load_encoder(collection, "lmk", Settings()).encode_documents(texts)
    for document, embedding in zip(collection.documents(), made, strict=True):
        stored = collection.embedding(record.id, document.id)
        assert stored is not None
        assert stored.vector == pytest.approx(embedding.vector, abs=1e-5)
    assert token_counts(collection, record.id) == {
        document.id: (embedding.tokens, embedding.truncated)
        for document, embedding in zip(collection.documents(), made, strict=True)
    }
    assert add_pooling(collection, "lmk") == 0


def test_everything_is_embedded_anew_by_another_model(
    make_collection: Make, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    from indexes.errors import FingerprintError

    texts = ["whales sing in the sea", "iron rusts in wet air"]
    collection = make_collection(texts, ("mean", "cls"))
    other = tmp_path / "other"
    shutil.copytree(tiny_bert, other)
    weights = load_file(other / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    save_file({**weights, name: torch.flip(weights[name], [0])}, other / "model.safetensors", {"format": "pt"})
    monkeypatch.setenv("LMK_RAG_BASE", str(other))
    with pytest.raises(FingerprintError):
        load_encoder(collection, "mean", Settings())
    told = Told()
    anew = embed_anew(collection, Settings(), progress=told)
    assert anew.embedded == {"mean": 2, "cls": 2}
    assert told.all == told.done == (4, 2 * sum(map(len, texts)))
    made = load_encoder(collection, "mean", Settings()).encode_documents(texts)
    assert anew.tokens == 2 * sum(embedding.tokens for embedding in made)
    record = collection.encoder("mean")
    assert record is not None
    for document, embedding in zip(collection.documents(), made, strict=True):
        stored = collection.embedding(record.id, document.id)
        assert stored is not None
        assert stored.vector == pytest.approx(embedding.vector, abs=1e-5)
    assert [each.pooling for each in collection.encoders(active_only=False)] == ["mean", "cls"]


def test_only_the_named_poolings_are_embedded_anew(make_collection: Make) -> None:
    collection = make_collection(["whales sing", "iron rusts"], ("mean", "cls"))
    assert embed_anew(collection, Settings(granularity=16), ["mean"]).embedded == {"mean": 2}
    made = {record.pooling: record.fingerprint["granularity"] for record in collection.encoders()}
    assert (made["mean"], made["cls"] == 16) == (16, False)


def test_vectors_from_elsewhere_are_refused_in_the_words_of_an_ingest(tmp_path: Path) -> None:
    embedding = DeterministicFakeEmbedding(size=8)
    LMKVectorStore(tmp_path / "store", embedding).add_texts(["whales sing", "iron rusts"])
    with Collection.open(tmp_path / "store") as collection:
        with pytest.raises(CollectionError) as refused:
            ingest([Path(__file__)], tmp_path / "store", Options(include=("*",), workers=0))
        for run in (lambda: embed_anew(collection, Settings()), lambda: add_pooling(collection, "lmk")):
            with pytest.raises(CollectionError) as again:
                run()
            assert str(again.value) == str(refused.value)
        assert "DeterministicFakeEmbedding through LangChain" in str(refused.value)
        assert [record.pooling for record in collection.encoders()] == ["langchain"]
