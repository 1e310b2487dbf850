"""For LangChain: the encoder as `Embeddings`, a collection as `VectorStore`, the search as `Retriever`.

Needs langchain-core alone, not the package ``langchain``.
"""

from lmk_rag.langchain.embeddings import LMKEmbeddings
from lmk_rag.langchain.retriever import LMKRetriever
from lmk_rag.langchain.vectorstore import LMKVectorStore

__all__ = ["LMKEmbeddings", "LMKRetriever", "LMKVectorStore"]
