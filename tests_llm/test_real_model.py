"""Questions to a real model: its words arrive in pieces, and whatever it writes, what is cited was checked."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.answer import Answer, stream
from lmk_rag.indexing import Indexer
from lmk_rag.search import Searcher

TEXTS = [
    "The sea is deep and blue. Whales sing in the sea at night. Nobody knows why they sing.",
    "Rust eats iron. It needs water and air. Paint keeps water away from iron.",
]


@pytest.fixture
def searcher(tmp_path: Path) -> Iterator[Searcher]:
    collection = Collection.open(tmp_path / "collection", create=True)
    with collection.write("test"):
        Indexer(collection, []).add(
            [Document(external_id=f"/{n}.txt", pages=(text,), title=f"Text {n}") for n, text in enumerate(TEXTS)]
        )
    yield Searcher(collection)
    collection.close()


@pytest.mark.parametrize("way", ["in the string", "in the environment"])
def test_a_model_answers_in_pieces(searcher: Searcher, server: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server}/v1" if way == "in the environment" else "http://127.0.0.1:9/v1")
    llm = "openai:gemma" if way == "in the environment" else f"openai:gemma@{server}/v1"
    *pieces, last = stream(searcher, "When do whales sing?", llm)
    assert isinstance(last, Answer)
    assert last.model == "openai:gemma", last.notes
    assert len(pieces) > 1
    assert_checked(searcher, last)


def test_a_follow_up_is_rewritten_and_answered(searcher: Searcher, server: str) -> None:
    history = [("Do whales sing?", "Whales sing in the sea at night. [1]")]
    *_, last = stream(searcher, "When do they do it?", f"openai:gemma@{server}/v1", history)
    assert isinstance(last, Answer)
    assert last.model == "openai:gemma", last.notes
    assert_checked(searcher, last)


def assert_checked(searcher: Searcher, answer: Answer) -> None:
    """Every number in the text is a citation's, and every quote stands where it says."""
    assert {int(n) for n in re.findall(r"\[(\d+)\]", answer.text)} == {each.n for each in answer.citations}
    for each in answer.citations:
        assert searcher.collection.page_texts(each.id)[each.page - 1][each.start : each.end] == each.quote
