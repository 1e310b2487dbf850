"""Whose vectors a collection holds: this program's or another embedding's, and never a mixture."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from indexes.collection import Collection
from indexes.errors import FingerprintError, LockedError
from indexes.records import Document
from ingest.pipeline import Options, ingest
from lmk_rag.cli import app
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.indexing import Indexer
from lmk_rag.langchain import LMKEmbeddings, LMKRetriever, LMKVectorStore
from tests.langchain.embedders import Letters

Open = Callable[..., LMKVectorStore]


@pytest.fixture
def open_store(tmp_path: Path) -> Any:
    """Give a function that opens the same collection with any embedding."""
    stores = []

    def open_it(embedding: Any = None) -> LMKVectorStore:
        stores.append(LMKVectorStore(tmp_path / "store", embedding))
        return stores[-1]

    yield open_it
    for store in stores:
        store.collection.close()


def search(folder: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["search", "stars", "--collection", str(folder), "--json", *options])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_another_embedding_is_noted_at_the_first_write(open_store: Open) -> None:
    store = open_store(Letters())
    assert store.similarity_search("a") == []
    assert store.collection.encoders() == []
    store.add_texts(["stars"])
    [record] = store.collection.encoders()
    assert (record.fingerprint, record.dimension) == (
        {"class": "tests.langchain.embedders.Letters", "name": "letters", "dimension": 26},
        26,
    )


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        (Letters("other"), "were made by .*Letters with letters, and not by .*Letters with other"),
        (None, "were made by .*Letters with letters: open it with that embedding"),
        (LMKEmbeddings(), "were made by .*Letters with letters: open it with that embedding"),
    ],
)
def test_vectors_of_another_embedding_take_no_other(open_store: Open, embedding: Any, message: str) -> None:
    open_store(Letters()).add_texts(["stars"])
    store = open_store(embedding)
    for use in (
        lambda: store.add_texts(["more"]),
        lambda: store.similarity_search("stars"),
        lambda: store.max_marginal_relevance_search("stars"),
    ):
        with pytest.raises(FingerprintError, match=message):
            use()
    assert store.collection.count() == 1


def test_another_dimension_is_refused(open_store: Open) -> None:
    open_store(Letters()).add_texts(["stars"])
    shorter = open_store(Letters(letters="abcs"))
    with pytest.raises(FingerprintError, match=r"have dimension 26, and .* of dimension 4"):
        shorter.add_texts(["as"])
    with pytest.raises(FingerprintError, match=r"shape \(4,\).*dimension 26"):
        shorter.similarity_search("as")
    assert shorter.collection.count() == 1


def test_our_vectors_take_no_other_embedding(open_store: Open) -> None:
    open_store().add_texts(["stars"])
    letters = open_store(Letters())
    for use in (lambda: letters.add_texts(["more"]), lambda: letters.similarity_search("stars")):
        with pytest.raises(FingerprintError, match=r"made by this program's own encoder, and not by .*Letters"):
            use()
    [record] = open_store().collection.encoders()
    with pytest.raises(FingerprintError, match="granularity 32, and this encoder has granularity 64"):
        open_store(LMKEmbeddings(pooling=record.pooling, granularity=64)).add_texts(["more"])


def test_a_pooling_that_the_collection_lacks_is_refused(open_store: Open) -> None:
    open_store(LMKEmbeddings(pooling="mean")).add_texts(["stars"])
    with pytest.warns(UserWarning, match="mcls"), pytest.raises(FingerprintError, match=r"has mean .* makes mcls"):
        open_store(LMKEmbeddings(pooling="mcls")).similarity_search("stars")


def test_an_embedding_that_loses_vectors_is_refused(open_store: Open) -> None:
    class Losing(Letters):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts)[1:]

    store = open_store(Losing())
    with pytest.raises(ValueError, match="Losing gave 1 vectors for 2 texts"):
        store.add_texts(["a", "b"])
    assert store.collection.count() == 0


def test_the_command_line_searches_foreign_vectors_by_bm25_and_says_so(open_store: Open, tmp_path: Path) -> None:
    open_store(Letters()).add_texts(["Stars shine.", "Rust eats iron."], ids=["stars", "rust"])
    found = search(tmp_path / "store")
    assert [hit["path"] for hit in found["hits"]] == ["stars"]
    assert found["score_kind"] == "bm25"
    retrieved = LMKRetriever(collection=tmp_path / "store", mode="dense").invoke("stars")
    assert [each.id for each in retrieved] == ["stars"]


@pytest.mark.parametrize("command", ["ingest", "reindex"])
def test_the_command_line_does_not_embed_beside_foreign_vectors(
    open_store: Open, folder: Path, tmp_path: Path, command: str
) -> None:
    open_store(Letters()).add_texts(["stars"])
    arguments = [command, *([str(folder)] if command == "ingest" else []), "--collection", str(tmp_path / "store")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "tests.langchain.embedders.Letters through LangChain" in " ".join(result.stderr.split())
    assert open_store(Letters()).collection.count() == 1


def test_our_vectors_carry_evidence_and_serve_the_command_line(open_store: Open, tmp_path: Path) -> None:
    store = open_store()
    store.add_texts(["Stars shine at night.", "Rust eats iron."], [{"title": "Sky"}, {}], ids=["stars", "rust"])
    found = search(tmp_path / "store", "--mode", "dense")
    assert [(hit["path"], hit["title"]) for hit in found["hits"] if hit["path"] == "stars"] == [("stars", "Sky")]
    assert found["score_kind"] == "cosine"
    [record] = store.collection.encoders()
    stored = store.collection.find("stars", "langchain")
    assert stored is not None
    kept = store.collection.embedding(record.id, stored.id)
    assert kept is not None
    assert kept.spans.tolist() == [[0, 21]]
    assert store.collection.verify() == []


def test_an_ingest_goes_on_beside_it(open_store: Open, folder: Path, tmp_path: Path) -> None:
    store = open_store()
    store.add_texts(["Stars shine at night."], ids=["stars"])
    assert ingest([folder], tmp_path / "store", Options(workers=0, prune=True)).indexed == 4
    assert store.collection.count() == 5
    assert len(store.similarity_search("stars", k=9)) == 5


def test_every_pooling_of_a_collection_is_kept_up(open_store: Open) -> None:
    collection = open_store().collection
    encoders = [Encoder.load(pooling=pooling) for pooling in ("mean",)]
    with pytest.warns(UserWarning, match="cls"):
        encoders.append(Encoder.load(pooling="cls"))
    with collection.write("test"):
        Indexer(collection, encoders).add([Document(external_id="/a", pages=("a",))])
    with pytest.warns(UserWarning, match="cls"):
        open_store().add_texts(["b"])
    assert {record.pooling: collection.missing(record.id) for record in collection.encoders()} == {
        "mean": [],
        "cls": [],
    }


def test_a_second_writer_is_told_of_the_first(open_store: Open, tmp_path: Path) -> None:
    store = open_store(Letters())
    with Collection.open(tmp_path / "store") as other, other.write("ingest"):
        with pytest.raises(LockedError, match=r"being written by process \d+ \(ingest"):
            store.add_texts(["a"])
        with pytest.raises(LockedError):
            store.delete(["a"])
    assert store.add_texts(["a"], ids=["1"]) == ["1"]
