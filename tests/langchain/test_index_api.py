"""LangChain's `index()` in every clean-up mode: what it reports, and what the store then holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index

from lmk_rag.langchain import LMKVectorStore
from tests.langchain.embedders import Letters


def document(source: str, text: str) -> Document:
    return Document(page_content=text, metadata={"source": source})


FIRST = [document("one", "aa"), document("one", "bb"), document("two", "cc"), document("two", "dd")]
# "bb" of source "one" has become "bbb"; "two" is not looked at.
SECOND = [document("one", "aa"), document("one", "bbb")]
EXPECTED = {
    None: (0, {"aa", "bb", "bbb", "cc", "dd"}),
    "incremental": (1, {"aa", "bbb", "cc", "dd"}),
    "scoped_full": (1, {"aa", "bbb", "cc", "dd"}),
    "full": (3, {"aa", "bbb"}),
}
MODES = [pytest.param(mode, id=str(mode)) for mode in EXPECTED]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LMKVectorStore]:
    store = LMKVectorStore(tmp_path / "store", Letters())
    yield store
    store.collection.close()


def counts(added: int, deleted: int, skipped: int) -> dict[str, int]:
    return {"num_added": added, "num_updated": 0, "num_deleted": deleted, "num_skipped": skipped}


def texts(store: LMKVectorStore) -> set[str]:
    return {each.page_content for each in store.similarity_search("abcd", k=99)}


@pytest.mark.parametrize("mode", MODES)
def test_index(store: LMKVectorStore, mode: Any) -> None:
    manager = InMemoryRecordManager("test")
    manager.create_schema()
    options: Any = {"cleanup": mode, "source_id_key": "source", "key_encoder": "sha256"}
    deleted, left = EXPECTED[mode]
    assert index(FIRST, manager, store, **options) == counts(4, 0, 0)
    assert index(FIRST, manager, store, **options) == counts(0, 0, 4)
    assert index(SECOND, manager, store, **options) == counts(1, deleted, 1)
    assert texts(store) == left
    forced = index(SECOND, manager, store, force_update=True, **options)
    assert (forced["num_updated"], texts(store)) == (2, left)
    if mode == "full":
        assert index([], manager, store, **options) == counts(0, 2, 0)
        assert texts(store) == set()


@pytest.mark.parametrize("mode", MODES)
async def test_aindex(store: LMKVectorStore, mode: Any) -> None:
    manager = InMemoryRecordManager("test")
    await manager.acreate_schema()
    options: Any = {"cleanup": mode, "source_id_key": "source", "key_encoder": "sha256", "batch_size": 1}
    deleted, left = EXPECTED[mode]
    assert await aindex(FIRST, manager, store, **options) == counts(4, 0, 0)
    assert await aindex(SECOND, manager, store, **options) == counts(1, deleted, 1)
    assert {each.page_content for each in await store.asimilarity_search("abcd", k=99)} == left
