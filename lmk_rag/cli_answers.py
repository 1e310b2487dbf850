"""The commands that answer: ask here, serve and mcp for other programs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from lmk_rag import console
from lmk_rag.answering.records import Answer
from lmk_rag.cli_common import DEFAULT_COLLECTION, CollectionOption, DeviceOption, JsonOption, one_sentence
from lmk_rag.search import Searcher

LlmOption = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="STRING",
        help="A language model: ollama:MODEL, openai:MODEL, openai:MODEL@URL [default: none, sentences are quoted].",
    ),
]


def ask_command(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="In plain words.")],
    collection: CollectionOption = DEFAULT_COLLECTION,
    llm: LlmOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the documents, with numbered sources. Exit code 0 also where they do not answer."""
    from lmk_rag.answer import stream

    shown = ""
    answer = Answer("", found=False)
    with one_sentence():
        searcher = Searcher.open(collection, device)
        for piece in stream(searcher, question, llm):
            if isinstance(piece, Answer):
                answer = piece
            elif not as_json:
                console.out.print(console.literal(piece), end="")
                shown += piece
        searcher.close()
    for note in answer.notes:
        console.err.print(console.line(note, "yellow"), soft_wrap=True)
    if as_json:
        console.print_json(answer.to_json())
    else:
        print_answer(answer, shown)


def print_answer(answer: Answer, shown: str = "") -> None:
    """Print an answer and its numbered sources.

    Args:
        answer: the checked one.
        shown: what stands on the screen of it already; where checking changed it, the answer is printed whole.
    """
    if shown:
        console.out.print()
    if shown.strip() != answer.text:
        console.out.print(console.literal(answer.text))
    if answer.citations:
        console.out.print()
    for each in answer.citations:
        heading = Text(f"[{each.n}] ", style="green").append_text(console.line(each.title or each.path, "bold"))
        console.out.print(heading.append(f", p. {each.page}"))
        console.out.print(Padding(console.line(each.path, "cyan"), (0, 0, 0, 4), expand=False), soft_wrap=True)
        console.out.print(Padding(console.literal(" ".join(each.quote.split()), "dim"), (0, 0, 0, 4), expand=False))


def serve_command(
    collection: CollectionOption = DEFAULT_COLLECTION,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Beyond this machine only with a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="Port of the server.")] = 8000,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", envvar="LMK_RAG_TOKEN", help="What requests must bring.")
    ] = None,
    llm: LlmOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Serve the collection over HTTP: search, answers, documents, and vectors in OpenAI's format."""
    with _extra("serve"):
        import python_multipart  # noqa: F401 - what the server needs is asked for before anything is opened
        import uvicorn  # noqa: F401

        from lmk_rag.serving.guard import is_loopback
        from lmk_rag.serving.rest import serve
    if not token and not is_loopback(host):
        console.fail(
            f"{host or 'Every address'} is reached by other machines: set a token with --token or LMK_RAG_TOKEN."
        )
    shown = f"[{host}]" if ":" in host else host
    with one_sentence():
        told = f"The server is at http://{shown}:{port}, described at /docs (Ctrl-C ends it)."
        serve(collection, host, port, llm, token or None, device, lambda: console.err.print(told, markup=False))


def mcp_command(
    collection: CollectionOption = DEFAULT_COLLECTION, llm: LlmOption = None, device: DeviceOption = "auto"
) -> None:
    """Serve the collection to a program that speaks the Model Context Protocol, over standard input and output."""
    with _extra("mcp"):
        from lmk_rag.serving.mcp import serve
    with one_sentence():
        serve(collection, llm, device)


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """Say how to install an extra where a package of it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        console.fail(f"This needs {error.name}, which is not installed: run pip install 'lmk-rag[{name}]'.")
