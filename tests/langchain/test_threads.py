"""One store, many threads and tasks."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lmk_rag.langchain import LMKVectorStore, vectorstore
from tests.langchain.embedders import Letters


def test_threads_write_search_and_delete_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorstore, "_FEW_CHANGES", 5)  # index files are renewed in between
    store = LMKVectorStore(tmp_path / "store", Letters())

    def work(number: int) -> None:
        keep, drop = store.add_texts(["a" * (number + 1), "b"], ids=[f"keep {number}", f"drop {number}"])
        assert store.get_by_ids([keep])[0].page_content == "a" * (number + 1)
        assert store.similarity_search("a", k=1)[0].page_content.startswith("a")
        store.delete([drop])
        assert store.get_by_ids([drop]) == []

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert {each.id for each in store.similarity_search("a", k=99)} == {f"keep {number}" for number in range(40)}
    assert (store.collection.path / "vectors-1.faiss").exists()
    assert store.collection.verify() == []
    store.collection.close()


async def test_tasks_write_and_search_at_once(tmp_path: Path) -> None:
    store = await asyncio.to_thread(LMKVectorStore, tmp_path / "store")

    async def work(number: int) -> None:
        [made] = await store.aadd_texts([f"text {number}"], ids=[str(number)])
        found = await store.asimilarity_search(f"text {number}", k=1)
        assert (found[0].id, made) == (str(number), str(number))

    await asyncio.gather(*(work(number) for number in range(12)))
    assert await asyncio.to_thread(store.collection.count) == 12
