"""Answer a question from a folder of documents, with LangChain.

    python examples/langchain_rag.py FOLDER QUESTION
    python examples/langchain_rag.py FOLDER QUESTION --model ollama:llama3.2

``--model`` takes what LangChain's ``init_chat_model`` takes (``pip install "lmk-rag[llm]"``). Without it a stand-in
answers, so that the rest can be tried at once.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough

from ingest.pipeline import Options, ingest
from lmk_rag.langchain import LMKRetriever

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from the numbered passages alone and cite them, as in [1]. If they do not tell, say so."),
        ("human", "{context}\n\nQuestion: {question}"),
    ]
)


def numbered(passages: Sequence[Document]) -> str:
    """Write passages for the prompt."""
    return "\n\n".join(f"[{number}] {passage.page_content}" for number, passage in enumerate(passages, start=1))


def source(number: int, passage: Document) -> str:
    """Say where a passage stands."""
    place = passage.metadata
    return f"[{number}] {place['title'] or place['source']}, p. {place['page']} ({place['source']})"


def build_chain(retriever: BaseRetriever, model: BaseChatModel) -> Runnable[str, dict[str, Any]]:
    """Make a chain from a question to ``question``, ``passages`` and ``answer``."""
    answer = (
        RunnablePassthrough.assign(context=lambda found: numbered(found["passages"]))
        | PROMPT
        | model
        | StrOutputParser()
    )
    return RunnableParallel(question=RunnablePassthrough(), passages=retriever).assign(answer=answer)


def chat_model(name: str | None) -> BaseChatModel:
    """Load the chat model that was named, or the stand-in."""
    if name is None:
        return FakeListChatModel(responses=["(No chat model was named. It would have read the passages below.)"])
    from langchain.chat_models import init_chat_model

    return init_chat_model(name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Bring the collection up to date with the folder, and answer."""
    parser = argparse.ArgumentParser(description="Answer a question from a folder of documents.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("question")
    parser.add_argument("--model", help="such as ollama:llama3.2 or openai:gpt-5")
    parser.add_argument("--collection", type=Path, default=Path("lmk-collection"))
    given = parser.parse_args(arguments)

    ingest([given.folder], given.collection, Options())
    retriever = LMKRetriever(collection=given.collection, return_="passages")
    found = build_chain(retriever, chat_model(given.model)).invoke(given.question)
    print(found["answer"])
    for number, passage in enumerate(found["passages"], start=1):
        print(source(number, passage))


if __name__ == "__main__":
    main()
