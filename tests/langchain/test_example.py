"""The example runs, and hands the passages to the model that is named."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from pydantic import Field

from lmk_rag.langchain import LMKRetriever


@pytest.fixture
def example(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("langchain_rag", repository / "examples" / "langchain_rag.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Listening(FakeListChatModel):
    """Keeps what it is sent."""

    heard: list[list[BaseMessage]] = Field(default_factory=list)

    def _call(self, messages: list[BaseMessage], *rest: Any, **more: Any) -> str:
        self.heard.append(messages)
        return super()._call(messages, *rest, **more)


def test_the_example_ingests_a_folder_and_names_its_sources(
    example: ModuleType, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example.main([str(folder), "What eats iron?", "--collection", str(tmp_path / "made")])
    answer, first, *_ = capsys.readouterr().out.splitlines()
    assert "No chat model was named" in answer
    assert first.startswith("[1] ")
    assert first.endswith(f", p. 1 ({folder / 'iron.txt'})")


def test_the_chain_sends_numbered_passages_and_the_question(example: ModuleType, ingested: Path) -> None:
    model = Listening(responses=["Rust [1]."])
    retriever = LMKRetriever(collection=ingested, return_="passages", k=2)
    found = example.build_chain(retriever, model).invoke("What eats iron? {not a field}")
    assert found["answer"] == "Rust [1]."
    assert found["passages"] == retriever.invoke("What eats iron? {not a field}")
    [[_, human]] = model.heard
    first, second = found["passages"]
    assert human.content == (
        f"[1] {first.page_content}\n\n[2] {second.page_content}\n\nQuestion: What eats iron? {{not a field}}"
    )
    assert "Rust eats iron." in first.page_content


def test_a_named_model_is_looked_up_by_langchain(example: ModuleType) -> None:
    model = example.chat_model("ollama:some-model")
    assert (type(model).__name__, model.model) == ("ChatOllama", "some-model")
