"""`LMKEmbeddings` against the encoder, a peer library and LangChain's own store."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from blockbuster import BlockingError
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from lmk_rag.encoding.base_model import ModelError
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.langchain import LMKEmbeddings

TEXTS = ["Whales sing in the sea.", "", "a\0b \ud800 \r\n c", "Long. " * 400]


@pytest.mark.parametrize("pooling", [None, "mean"])
def test_vectors_are_the_encoders(pooling: str | None) -> None:
    encoder = Encoder.load(pooling=pooling)
    made = LMKEmbeddings(pooling=pooling).embed_documents(TEXTS)
    assert made == [each.vector.tolist() for each in encoder.encode_documents(TEXTS)]
    assert {type(number) for vector in made for number in vector} == {float}
    assert np.linalg.norm(made, axis=1) == pytest.approx(1, abs=1e-3)


def test_settings_reach_the_encoder() -> None:
    encoder = LMKEmbeddings(pooling="mean", granularity=64, max_tokens=5).encoder
    assert (encoder.pooling, encoder.granularity, encoder.max_tokens) == ("mean", 64, 5)
    with pytest.raises(ModelError, match="max_tokens must be at least 1, not 0"):
        LMKEmbeddings(max_tokens=0).embed_query("a")


def test_nothing_to_embed_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMK_RAG_BASE", "/nowhere")
    embeddings = LMKEmbeddings()
    assert embeddings.embed_documents([]) == []
    with pytest.raises(ModelError):
        embeddings.embed_query("a")


def test_the_real_base_agrees_with_sentence_transformers(base_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["How deep do whales dive?", "A telescope gathers the light of stars."]
    peer = SentenceTransformer(str(base_model), device="cpu").encode(texts, normalize_embeddings=True)
    ours = LMKEmbeddings(str(base_model), pooling="mean", device="cpu")
    vectors = np.array([*ours.embed_documents(texts), ours.embed_query(texts[0])])
    assert (vectors * [*peer, peer[0]]).sum(axis=1) == pytest.approx(1, abs=2e-3)


def test_inside_langchains_own_store() -> None:
    embeddings = LMKEmbeddings()
    store = InMemoryVectorStore(embeddings)
    documents = [Document(page_content=text, id=text) for text in ("whales sing", "stars shine", "rust eats iron")]
    store.add_documents(documents)
    [(found, score), *others] = store.similarity_search_with_score("stars shine", k=3)
    assert found.page_content == "stars shine"
    assert score == pytest.approx(1, abs=1e-3)
    assert len(others) == 2
    assert all(other < 0.999 for _, other in others)


def test_threads_share_one_encoder() -> None:
    embeddings = LMKEmbeddings()
    with ThreadPoolExecutor(8) as pool:
        encoders = list(pool.map(lambda _: embeddings.encoder, range(8)))
        alone = [embeddings.embed_query(f"text {number}") for number in range(16)]
        together = list(pool.map(lambda number: embeddings.embed_query(f"text {number}"), range(16)))
    assert len({id(encoder) for encoder in encoders}) == 1
    assert together == alone


async def test_blockbuster_is_at_work(tmp_path: Path) -> None:
    with pytest.raises(BlockingError):
        tmp_path.stat()


async def test_async_methods_give_the_same() -> None:
    embeddings = LMKEmbeddings()  # loaded from files by the first call
    assert await embeddings.aembed_documents(TEXTS) == embeddings.embed_documents(TEXTS)
    assert await embeddings.aembed_query("whales") == embeddings.embed_query("whales")
