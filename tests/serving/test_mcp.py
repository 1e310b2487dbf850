"""The Model Context Protocol server, started as a program and asked by the package's own client."""

import asyncio
import os
import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from indexes.collection import Collection


def ask_server(collection: Collection, *calls: tuple[str, dict[str, Any]]) -> tuple[list[str], list[Any]]:
    """Start the server, list its tools, call some; gives the tools' names and the calls' results."""
    names = ("PATH", "PYTHONPATH", "LMK_RAG_BASE", "HF_HUB_OFFLINE")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "lmk_rag.cli", "mcp", "--collection", str(collection.path)],
        env={name: os.environ[name] for name in names if name in os.environ},
    )

    async def talk() -> tuple[list[str], list[Any]]:
        async with Client(server) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            return tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(talk())


def test_the_tools_over_standard_input_and_output(collection: Collection) -> None:
    tools, (searched, read, asked, missing) = ask_server(
        collection,
        ("search", {"query": "iron rust", "k": 1}),
        ("read_passage", {"id": 1, "start": 4, "end": 7}),
        ("ask", {"question": "When do whales sing at night in the sea?"}),
        ("read_passage", {"id": 99}),
    )
    assert tools == ["search", "read_passage", "ask"]
    (hit,) = searched.structured_content["hits"]
    (passage, *_) = hit["passages"]
    assert (hit["path"], hit["title"]) == ("/1.txt", "Text 1")
    assert collection.page_texts(hit["id"])[0][passage["start"] : passage["end"]] == passage["text"]
    assert read.structured_content["text"] == "sea"
    assert "Whales sing in the sea at night." in [each["quote"] for each in asked.structured_content["citations"]]
    assert missing.is_error
    assert "There is no document 99" in missing.content[0].text


@pytest.mark.parametrize(("start", "end", "text"), [(0, None, "The sea"), (-5, 3, "The"), (10_000, None, "")])
def test_a_passage_is_cut_to_the_page(collection: Collection, start: int, end: int | None, text: str) -> None:
    from lmk_rag.search import Searcher
    from lmk_rag.serving.mcp import create_server

    async def talk() -> Any:
        async with Client(create_server(Searcher(collection))) as client:
            return await client.call_tool("read_passage", {"id": 1, "start": start, "end": end})

    found = asyncio.run(talk()).structured_content
    assert found["text"].startswith(text)
    assert found["end"] - found["start"] == len(found["text"])
