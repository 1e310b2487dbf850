"""The commands ask, serve and mcp, as a user types them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]
RunJson = Callable[..., Any]
QUESTION = "Do whales sing in the deep sea?"


def test_ask_as_json(run: Run, run_json: RunJson, folder: Path) -> None:
    run("ingest", folder)
    found = run_json("ask", QUESTION)
    assert list(found) == ["answer", "found", "citations", "model"]
    assert (found["found"], found["model"]) == (True, None)
    cited = found["citations"][0]
    assert list(cited) == ["n", "id", "path", "page", "start", "end", "quote"]
    page = run_json("show", cited["id"], "--page", cited["page"])["pages_text"][0]["text"]
    assert page[cited["start"] : cited["end"]] == cited["quote"]
    assert cited["path"] == str(folder / "sea.txt")


def test_ask_for_people_numbers_its_sources(run: Run, folder: Path) -> None:
    run("ingest", folder)
    result = run("ask", QUESTION)
    assert result.exit_code == 0
    answer, *sources = result.stdout.split("\n\n")
    assert "Whales sing in it." in answer
    assert "[1] sea, p. 1" in sources[0]
    assert str(folder / "sea.txt") in sources[0]


def test_nothing_found_is_no_error(run: Run, run_json: RunJson, folder: Path) -> None:
    run("ingest", folder)
    assert run_json("ask", "zirconium carbide melting?") == {
        "answer": "Not found in these documents.",
        "found": False,
        "citations": [],
        "model": None,
    }
    assert run("ask", "zirconium carbide melting?").stdout.strip() == "Not found in these documents."


def test_a_model_s_words_are_streamed_and_checked(
    run: Run, run_json: RunJson, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lmk_rag.answering import chat
    from tests.answer.fake import FakeChat

    def load(said: str) -> None:
        model = FakeChat(reply=lambda prompt: said)
        monkeypatch.setattr(chat.Chat, "load", classmethod(lambda cls, llm: cls(model, llm)))

    run("ingest", folder)
    load("Whales sing [1].")
    assert run_json("ask", QUESTION, "--llm", "a:b")["model"] == "a:b"
    assert run("ask", QUESTION, "--llm", "a:b").stdout.count("Whales sing [1].") == 1
    load("Whales sing [1][7].")
    result = run("ask", QUESTION, "--llm", "a:b")
    assert result.stdout.splitlines()[:2] == ["Whales sing [1][7]. ", "Whales sing [1]."]
    assert "cited [7], which it was not given" in result.stderr


def test_a_model_that_cannot_be_had_is_told_and_sentences_are_quoted(run: Run, folder: Path) -> None:
    run("ingest", folder)
    result = run("ask", QUESTION, "--llm", "nonsense")
    assert result.exit_code == 0
    assert "The language model 'nonsense' is not known" in result.stderr
    assert "Whales sing in it." in result.stdout


@pytest.mark.parametrize("command", [["ask", "x"], ["serve"], ["mcp"]])
def test_a_missing_collection_is_told(run: Run, command: list[str], tmp_path: Path) -> None:
    result = run(*command)
    assert result.exit_code == 2
    assert f"There is no collection at {tmp_path / 'collection'}" in result.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_serve_refuses_other_machines_without_a_token(run: Run, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LMK_RAG_TOKEN", raising=False)
    for arguments in ((), ("--token", "")):
        result = run("serve", "--host", host, *arguments)
        assert result.exit_code == 2
        assert f"{host} is reached by other machines: set a token with --token or LMK_RAG_TOKEN." in result.stderr


@pytest.mark.parametrize(("command", "module"), [("serve", "fastapi"), ("mcp", "mcp")])
def test_a_missing_extra_is_told(run: Run, command: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("lmk_rag.serving", f"{module}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    result = run(command)
    assert result.exit_code == 2
    assert f"run pip install 'lmk-rag[{command}]'" in result.stderr.replace("\n", " ")


def test_a_port_that_is_taken_is_told(run: Run, folder: Path) -> None:
    import socket

    run("ingest", folder)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = run("serve", "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "cannot be used (Address already in use): choose another --port." in result.stderr
