"""The server over a real connection: every route, OpenAI's own client, and who is turned away."""

import base64
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from indexes.collection import Collection
from ingest.uploads import safe_name
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.search import Searcher
from lmk_rag.serving import rest
from lmk_rag.serving.guard import is_loopback

Serve = Callable[..., str]


@pytest.fixture
def openai_client(serve: Serve) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{serve()}/v1", api_key="none", max_retries=0)


def test_openai_s_client_gets_the_encoder_s_vectors(openai_client: openai.OpenAI) -> None:
    texts = ["whales sing", "x " * 300]
    made = openai_client.embeddings.create(model="mean", input=texts, encoding_format="float")
    expected = Encoder.load(pooling="mean").encode_documents(texts)
    assert [each.index for each in made.data] == [0, 1]
    for each, right in zip(made.data, expected, strict=True):
        assert each.embedding == pytest.approx(right.vector.tolist(), abs=1e-6)
    assert made.usage.prompt_tokens == made.usage.total_tokens == sum(each.tokens for each in expected)
    assert made.model == "mean"


def test_base64_is_little_endian_float32(client: httpx.Client) -> None:
    body = {"model": "mean", "input": "whales sing", "encoding_format": "base64"}
    (made,) = client.post("/v1/embeddings", json=body).json()["data"]
    (right,) = Encoder.load(pooling="mean").encode_documents(["whales sing"])
    got = struct.unpack("<32f", base64.b64decode(made["embedding"]))
    assert got == pytest.approx(right.vector.tolist(), abs=1e-6)


def test_openai_s_client_by_default_and_with_one_text(openai_client: openai.OpenAI) -> None:
    (made,) = openai_client.embeddings.create(model="mean", input="whales sing", dimensions=32).data
    (right,) = Encoder.load(pooling="mean").encode_documents(["whales sing"])
    assert made.embedding == pytest.approx(right.vector.tolist(), abs=1e-6)
    assert [each.id for each in openai_client.models.list()] == ["mean"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"input": [1, 2, 3]}, "token numbers are not taken"),
        ({"input": [[1, 2], [3]]}, "token numbers are not taken"),
        ({"input": []}, "at least one"),
        ({"input": ["x"] * 2049}, "input has 2049 texts: send 2048 at most."),
        ({"input": "x", "dimensions": 8}, "mean has vectors of 32 dimensions, not 8"),
        ({"input": "x", "encoding_format": "int8"}, "encoding_format"),
    ],
)
def test_what_cannot_be_embedded_is_told(openai_client: openai.OpenAI, arguments: Any, told: str) -> None:
    with pytest.raises(openai.BadRequestError, match=told):
        openai_client.embeddings.create(model="mean", **arguments)


def test_an_unknown_model_is_told(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match=r"There is no model 'gpt': this server has mean\."):
        openai_client.embeddings.create(model="gpt", input="x")


def test_search_gives_what_the_library_gives(client: httpx.Client, collection: Collection) -> None:
    found = client.post("/search", json={"query": "iron rust", "k": 1, "filter": ["type=text"]}).json()
    (right,) = Searcher(collection).search("iron rust", k=1).hits
    (hit,) = found["hits"]
    assert (hit["id"], hit["path"], hit["rank"], found["score_kind"]) == (right.id, right.path, 1, "fusion")
    assert hit["passages"][0]["text"] == right.passages[0].text


def events(text: str) -> list[tuple[str, Any]]:
    return [(name, json.loads(data)) for name, data in re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)]


def test_ask_ends_with_the_answer(client: httpx.Client) -> None:
    response = client.post("/ask", json={"question": "When do whales sing at night in the sea?"})
    assert response.headers["content-type"].startswith("text/event-stream")
    name, last = events(response.text)[-1]
    assert name == "answer"
    assert list(last) == ["answer", "found", "citations", "model"]
    assert "Whales sing in the sea at night." in [each["quote"] for each in last["citations"]]


def test_ask_streams_a_model_s_pieces(collection: Collection, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmk_rag.answering import chat
    from tests.answer.fake import FakeChat

    model = FakeChat(reply=lambda prompt: "Whales sing at night." if "rewritten" in prompt else "Whales sing [1][8].")
    monkeypatch.setattr(chat.Chat, "load", classmethod(lambda cls, llm: cls(model, llm)))
    history = [{"question": "What do whales do?", "answer": "Sing."}]
    response = httpx.post(f"{serve(llm='fake')}/ask", json={"question": "When?", "history": history}, timeout=60)
    found = events(response.text)
    assert "".join(data["text"] for name, data in found if name == "piece").strip() == "Whales sing [1][8]."
    assert found[-1][1]["answer"] == "Whales sing [1]."
    assert found[-1][1]["model"] == "fake"
    assert any("[8]" in data["text"] for name, data in found if name == "note")


def test_documents_are_listed_uploaded_replaced_and_deleted(client: httpx.Client, collection: Collection) -> None:
    assert client.get("/documents").json()["count"] == 2
    made = client.post("/documents", files={"file": ("../../stars.md", b"# Stars\n\nStars shine at night.")})
    assert made.status_code == 201, made.text
    about = made.json()
    path = collection.path / "uploads" / "stars.md"
    assert (about["indexed"], collection.page_texts(about["id"])) == (1, ["# Stars\n\nStars shine at night."])
    assert path.read_bytes() == b"# Stars\n\nStars shine at night."
    listed = client.get("/documents", params={"offset": 2}).json()["documents"]
    assert [(each["path"], each["title"], each["type"]) for each in listed] == [(str(path), "Stars", "markdown")]
    assert client.post("/search", json={"query": "stars", "k": 1}).json()["hits"][0]["id"] == about["id"]

    again = client.post("/documents", files={"file": ("stars.md", b"# Stars\n\nStars fade at dawn.")}).json()
    assert (again["updated"], again["id"]) == (1, about["id"])

    assert client.delete(f"/documents/{about['id']}").status_code == 204
    assert not path.exists()
    assert client.delete(f"/documents/{about['id']}").status_code == 404
    assert client.get("/documents").json()["count"] == 2


def test_deleting_leaves_files_that_were_not_sent_here(
    client: httpx.Client, collection: Collection, tmp_path: Path
) -> None:
    from ingest.pipeline import Options, ingest

    mine = tmp_path / "mine.txt"
    mine.write_text("My own file about owls.", encoding="utf-8")
    ingest([mine], collection.path, Options(workers=0))
    stored = collection.find(str(mine))
    assert stored is not None
    assert client.delete(f"/documents/{stored.id}").status_code == 204
    assert mine.exists()


def test_an_upload_that_cannot_be_read_is_told_and_not_kept(client: httpx.Client, collection: Collection) -> None:
    made = client.post("/documents", files={"file": ("empty.txt", b"")})
    assert made.status_code == 422
    assert made.json()["error"]["message"] == "empty.txt was not added: no text."
    assert list((collection.path / "uploads").iterdir()) == []
    assert collection.failures() == []


def test_a_failed_replacement_leaves_what_was_there(client: httpx.Client, collection: Collection) -> None:
    first = client.post("/documents", files={"file": ("owl.txt", b"Owls see at night.")}).json()
    assert client.post("/documents", files={"file": ("owl.txt", b"")}).status_code == 422
    assert (collection.path / "uploads" / "owl.txt").read_bytes() == b"Owls see at night."
    stored = collection.find(str(collection.path / "uploads" / "owl.txt"))
    assert stored is not None
    assert collection.page_texts(stored.id) == ["Owls see at night."]
    assert first["indexed"] == 1


def test_another_writer_is_told(client: httpx.Client, collection: Collection) -> None:
    import threading

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with collection.write("elsewhere"):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert client.delete("/documents/1").status_code == 409
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\docs\\a.pdf", "a.pdf"),
        ("a\x00b\n.txt", "a_b_.txt"),
        (".hidden.txt", "hidden.txt"),
        ("é" * 300 + ".txt", "é" * 75 + ".txt"),
        ("report", "report"),
    ],
)
def test_names_of_uploads_stay_in_their_folder(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize("name", ["", "..", "/", "...", "///"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name for a file"):
        safe_name(name)


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/search", {"query": "x", "k": 0}, "k: "),
        ("/search", {"query": "x", "mode": "fuzzy"}, "Mode 'fuzzy' is not known"),
        ("/search", {"query": "x", "filter": ["nonsense"]}, "nonsense"),
        ("/search", {}, "query: "),
        ("/ask", {"question": "x", "filter": ["nonsense"]}, "nonsense"),
    ],
)
def test_mistakes_are_told_in_a_sentence(client: httpx.Client, path: str, body: Any, told: str) -> None:
    response = client.post(path, json=body)
    assert response.status_code == 400
    assert told in response.json()["error"]["message"]


def test_a_body_that_is_too_large_is_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.post("/search", json={"query": "x" * (rest.MOST_BYTES + 1)}).status_code == 413

    def endless() -> Any:  # no length is told
        for _ in range(6):
            yield b" " * 2**20

    assert client.post("/search", content=endless()).status_code == 413


def test_an_upload_may_be_larger_than_other_bodies(client: httpx.Client, collection: Collection) -> None:
    text = b"Owls see at night. " + b" \n" * (rest.MOST_BYTES // 2 + 1)
    assert client.post("/documents", files={"file": ("owl.txt", text)}).status_code == 201


# Who is turned away


def test_another_name_for_loopback_is_refused(client: httpx.Client) -> None:
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[", ""):
        assert client.get("/healthz", headers={"Host": name}).status_code in (400, 403), name
    for name in ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8000"):
        assert client.get("/healthz", headers={"Host": name}).json() == {"status": "ok"}, name


def test_pages_of_other_origins_are_refused(client: httpx.Client, collection: Collection) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        files = {"file": ("a.txt", b"planted text")}
        assert client.post("/documents", files=files, headers={"Origin": origin}).status_code == 403
    assert collection.count() == 2
    own = str(client.base_url).rstrip("/")
    assert client.get("/documents", headers={"Origin": own}).status_code == 200


def test_odd_requests_are_refused_in_a_sentence(client: httpx.Client) -> None:
    assert client.get("/documents", headers={"Origin": "http://[bad"}).status_code == 403
    assert client.delete(f"/documents/{-(10**30)}").status_code == 404
    assert client.get("/documents?offset=-1").status_code == 400
    refused = client.post("/search", json={"query": "sea", "pooling": "cls"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "There are no cls vectors" in refused.json()["error"]["message"]


def test_a_token_is_asked_for(serve: Serve) -> None:
    address = serve(token="s3cret")
    for header in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "s3cret"},
        {"Authorization": "Basic s3cret"},
    ):
        refused = httpx.get(f"{address}/documents", headers=header)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert httpx.get(f"{address}/documents", headers={"Authorization": "Bearer s3cret"}).status_code == 200
    assert httpx.get(f"{address}/healthz").status_code == 200
    assert httpx.get(f"{address}/docs").status_code == 401
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="s3cret", max_retries=0)
    assert [each.id for each in client.models.list()] == ["mean"]


def test_beyond_loopback_any_name_is_good_and_the_token_decides(serve: Serve) -> None:
    address = serve(host="0.0.0.0", token="s3cret")
    headers = {"Host": "server.example", "Authorization": "Bearer s3cret"}
    assert httpx.get(f"{address}/documents", headers=headers).status_code == 200
    assert httpx.get(f"{address}/documents", headers={"Host": "server.example"}).status_code == 401


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_what_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_the_page_loads_nothing_and_names_every_route(client: httpx.Client) -> None:
    page = client.get("/docs")
    api = client.get("/openapi.json").json()
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"<script|src=|https?://|url\(", page.text)
    for path, methods in api["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path.replace('{', '{')}" in page.text
    assert {"/search", "/ask", "/documents", "/healthz", "/v1/embeddings", "/v1/models"} <= set(api["paths"])
    assert "any text; &quot;double quotes&quot; mean a phrase" in page.text
