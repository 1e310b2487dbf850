"""LangChain's documents to a collection's, and back, byte for byte."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document

from indexes.collection import Collection
from indexes.records import Document as CollectionDocument
from indexes.records import StoredDocument

SOURCE = "langchain"
"""The source of documents that were added through LangChain; their external id is LangChain's id."""


def new_id() -> str:
    """Make an id for a document that has none."""
    return str(uuid.uuid4())


def to_collection(document_id: str, text: str, metadata: Mapping[str, Any]) -> CollectionDocument:
    """Make a document of one page, uncleaned; a ``title`` in its metadata counts in full-text search.

    Raises:
        ValueError: the metadata would not come back as it is.
    """
    for key, value in metadata.items():
        if not isinstance(key, str) or not _survives(value):
            raise ValueError(
                f"The metadata of document {document_id!r} cannot be kept as it is: {key!r} is {value!r}; use strings "
                "as keys, and strings, finite numbers, booleans, None, lists and mappings as values."
            )
    title = metadata.get("title")
    return CollectionDocument(
        external_id=document_id,
        pages=(text,),
        title=title if isinstance(title, str) else "",
        source=SOURCE,
        metadata=metadata,
    )


def find(collection: Collection, document_id: str) -> StoredDocument | None:
    """Return the document with one of LangChain's ids; a file's id is its path."""
    return collection.find(document_id, SOURCE) or collection.find(document_id)


def to_langchain(collection: Collection, stored: StoredDocument) -> Document:
    """Return a document with its whole text."""
    return Document(id=stored.external_id, page_content=collection.text(stored.id), metadata=metadata_of(stored))


def metadata_of(stored: StoredDocument) -> dict[str, Any]:
    """Return what was given for a document that was added through LangChain.

    A file's is what its reader found, with its path as ``source`` and its ``title``.
    """
    if stored.source == SOURCE:
        return stored.metadata
    return {"source": stored.external_id, "title": stored.title, **stored.metadata}


def _survives(value: object) -> bool:
    """Whether a value comes back from JSON as it was: a tuple would be a list, a number as a key a string."""
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
