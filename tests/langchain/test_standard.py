"""The standard suites of langchain-tests, as they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)
from langchain_tests.unit_tests import EmbeddingsUnitTests

from lmk_rag.langchain import LMKEmbeddings, LMKRetriever, LMKVectorStore


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return LMKEmbeddings


class TestEmbeddingsIntegration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return LMKEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"device": "cpu"}


class TestVectorStoreOfAnotherEmbedding(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        store = LMKVectorStore(tmp_path / "collection", self.get_embeddings())
        yield store
        store.collection.close()


class TestVectorStoreOfOurEmbedding(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        store = LMKVectorStore(tmp_path / "collection")
        yield store
        store.collection.close()


class TestRetriever(RetrieversIntegrationTests):
    collection: Path

    @pytest.fixture(autouse=True)
    def files(self, ingested: Path) -> None:
        type(self).collection = ingested

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LMKRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"collection": self.collection}

    @property
    def retriever_query_example(self) -> str:
        return "Who sings in the sea?"


class TestRetrieverOfPassages(TestRetriever):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"collection": self.collection, "return_": "passages"}
