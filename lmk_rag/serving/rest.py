"""The collection over HTTP: search, answers, documents, and vectors in OpenAI's format."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from indexes.errors import CollectionError, FilterError, LockedError
from indexes.filters import Filter
from ingest.uploads import FOLDER, safe_name
from lmk_rag import __version__
from lmk_rag.answer import Answer, stream
from lmk_rag.encoding.base_model import ModelError
from lmk_rag.search import Searcher
from lmk_rag.serving import page, uploads
from lmk_rag.serving.embeddings import Embedder, EmbeddingRequest, UnknownModelError
from lmk_rag.serving.guard import Guard, error

MOST_BYTES = 4 * 2**20
"""Of a request's body."""
MOST_UPLOADED = 200 * 2**20
"""Of an upload's body."""
_MOST_HITS = 1000


class SearchRequest(BaseModel):
    """The body of ``/search``."""

    query: str = Field(description='any text; "double quotes" mean a phrase')
    k: int = Field(10, ge=1, le=_MOST_HITS, description="hits, at most")
    mode: str = Field("hybrid", description="hybrid, dense or bm25")
    pooling: str | None = Field(None, description="whose vectors; lmk if indexed, else the first")
    evidence: bool = Field(True, description="whether evidence vectors take part")
    filter: list[str] = Field([], description="such as type=pdf or pages>10; all must hold")


class Turn(BaseModel):
    """A question and its answer, before this one."""

    question: str
    answer: str


class AskRequest(BaseModel):
    """The body of ``/ask``."""

    question: str = Field(description="in plain words")
    history: list[Turn] = Field([], description="questions and answers before this one, oldest first")
    k: int = Field(4, ge=1, le=50, description="documents that the answer may rest on")
    filter: list[str] = Field([], description="as for /search")


def create_app(
    searcher: Searcher, llm: str | None = None, host: str = "127.0.0.1", token: str | None = None
) -> FastAPI:
    """Make the server's application.

    Args:
        searcher: over the collection; closing it stays with the caller.
        llm: the language model of ``/ask``, as :func:`lmk_rag.answer.stream` takes it.
        host: the address that the server is bound to.
        token: what requests must bring; None only where ``host`` is of loopback.
    """
    app = FastAPI(
        title="lmk-rag",
        version=__version__,
        docs_url=None,  # FastAPI's own pages load scripts from another host
        redoc_url=None,
        max_body_size=MOST_BYTES,
        middleware=[Middleware(Guard, host=host, token=token)],
    )
    embedder = Embedder(searcher)
    _handle_errors(app)
    _add_documents(app, searcher)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        """Tell that the server is there; needs no token."""
        return {"status": "ok"}

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(page.render(app.openapi()), headers={"Content-Security-Policy": page.POLICY})

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        """List the encoders in OpenAI's format: one a pooling of the collection."""
        return embedder.models()

    @app.post("/v1/embeddings")
    def embeddings(request: EmbeddingRequest) -> dict[str, Any]:
        """Embed texts of any length, each whole, in OpenAI's format."""
        return embedder.embed(request)

    @app.post("/search")
    def search(request: SearchRequest) -> dict[str, Any]:
        """Find documents, and where in them the evidence stands."""
        if request.pooling is not None and searcher.collection.encoder(request.pooling) is None:
            raise ValueError(f"There are no {request.pooling} vectors: /v1/models gives the poolings.")
        return asdict(
            searcher.search(
                request.query, request.k, request.mode, request.pooling, request.evidence, _filter(request.filter)
            )
        )

    @app.post("/ask", response_class=StreamingResponse)
    def ask(request: AskRequest) -> StreamingResponse:
        """Answer a question, as server-sent events.

        Events: `piece` ({"text"}: a language model's text as it comes, unchecked), `note` ({"text"}), then `answer`
        ({"answer", "found", "citations", "model"}: takes the place of the pieces), or `error` ({"message"}).
        """
        history = [(turn.question, turn.answer) for turn in request.history]
        pieces = stream(searcher, request.question, llm, history, request.k, _filter(request.filter))
        return StreamingResponse(_events(pieces), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    return app


def _add_documents(app: FastAPI, searcher: Searcher) -> None:
    collection = searcher.collection

    @app.get("/documents")
    def list_documents(
        offset: Annotated[int, Query(ge=0, lt=2**63)] = 0, limit: Annotated[int, Query(ge=0)] = 1000
    ) -> dict[str, Any]:
        """List documents by id, and how many there are in all."""
        chosen = Filter.parse(f"id>{offset}") if offset else None
        found: list[dict[str, Any]] = []
        for each in collection.documents(chosen):
            if len(found) >= limit:
                break
            found.append(
                {"id": each.id, "path": each.path, "title": each.title, "type": each.kind, "pages": each.pages}
            )
        return {"documents": found, "count": collection.count()}

    @app.post("/documents", status_code=201, max_body_size=MOST_UPLOADED)
    def upload(file: UploadFile) -> dict[str, Any]:
        """Add a file (multipart, field `file`); one of the same name that was sent before is replaced."""
        name = file.filename or ""
        report = uploads.upload(collection, name, file.file)
        if report.failed:
            raise HTTPException(422, f"{safe_name(name)} was not added: {report.failed[0][1]}.")
        stored = collection.find(str(collection.path / FOLDER / safe_name(name)))
        counts = {key: getattr(report, key) for key in ("indexed", "updated", "unchanged")}
        return {"id": stored.id if stored else None, **counts, "warnings": [text for _, text in report.warnings]}

    @app.delete("/documents/{document_id}", status_code=204)
    def delete(document_id: int) -> Response:
        """Remove a document; its file stays, unless it was sent here."""
        stored = collection.get(document_id) if 0 < document_id < 2**63 else None
        if stored is None:
            raise HTTPException(404, f"There is no document {document_id}: /documents gives the ids.")
        uploads.remove(collection, stored)
        return Response(status_code=204)


def _events(pieces: Iterator[str | Answer]) -> Iterator[str]:
    try:
        for piece in pieces:
            if isinstance(piece, str):
                yield _event("piece", {"text": piece})
            else:
                yield from (_event("note", {"text": note}) for note in piece.notes)
                yield _event("answer", piece.to_json())
    except (CollectionError, ModelError, OSError, ValueError) as failure:  # the status has been sent already
        yield _event("error", {"message": str(failure)})


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _filter(expressions: list[str]) -> Filter | None:
    return Filter.all([Filter.parse(each) for each in expressions]) if expressions else None


def _handle_errors(app: FastAPI) -> None:
    statuses: dict[type[Exception], int] = {
        LockedError: 409, FilterError: 400, UnknownModelError: 404, ValueError: 400, CollectionError: 500,
        ModelError: 500,
    }  # fmt: skip
    for kind, status in statuses.items():
        app.add_exception_handler(kind, lambda _, failure, status=status: error(status, str(failure)))

    @app.exception_handler(HTTPException)
    def http(_: Request, failure: HTTPException) -> Response:
        return error(failure.status_code, str(failure.detail))

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, failure: RequestValidationError) -> Response:
        first = failure.errors()[0]
        place = ".".join(str(each) for each in first["loc"][1:]) or "body"
        return error(400, f"{place}: {first['msg']}.")


def serve(
    collection: Path, host: str, port: int, llm: str | None, token: str | None, device: str, ready: Callable[[], None]
) -> None:
    """Serve a collection until Ctrl-C; ``ready`` is called once the address is ours.

    Raises:
        CollectionError: there is none.
        OSError: the address is taken.
    """
    import socket

    import uvicorn

    searcher = Searcher.open(collection, device)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError as failure:
            other = "--host" if isinstance(failure, socket.gaierror) else "--port"
            raise OSError(f"{host}:{port} cannot be used ({failure.strerror}): choose another {other}.") from failure
        ready()
        server = uvicorn.Server(uvicorn.Config(create_app(searcher, llm, host, token), log_level="warning"))
        server.run(sockets=[bound])
    searcher.close()
