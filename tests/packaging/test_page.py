"""The Streamlit page: what it shows, what it never renders, and where its settings come from."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.indexing import Indexer

HOSTILE = "<script>alert(1)</script> $x$ [a](javascript:x) **bold** :red[red] :smile:"


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    yield
    st.cache_resource.clear()


@pytest.fixture(scope="module")
def collection(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One document that tries to be markup, and one that does not."""
    folder = tmp_path_factory.mktemp("page") / "collection"
    encoder = Encoder.load(str(tiny_bert), pooling="lmk", granularity=32, device="cpu", dtype="float32")
    hostile = Document(external_id=f"/docs/{HOSTILE}.txt", title=HOSTILE, pages=(f"Zebras. {HOSTILE}",))
    plain = Document(external_id="/docs/plain.txt", title="Plain", pages=("Nothing of the kind.", "Second page."))
    with Collection.open(folder, create=True) as opened, opened.write("test"):
        Indexer(opened, [encoder]).add([hostile, plain])
    return folder


@pytest.fixture
def page(repository: Path, collection: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("LMK_RAG_COLLECTION", str(collection))
    return AppTest.from_file(str(repository / "ui" / "app.py"), default_timeout=60)


def texts(elements: Any) -> list[str]:
    return [element.value for element in elements]


def test_a_missing_collection_is_told_with_the_command(
    page: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMK_RAG_COLLECTION", str(tmp_path / "absent"))
    page.run()
    assert not page.exception
    assert "no collection here yet" in page.info[0].value
    assert str(tmp_path / "absent") in page.code[0].value
    assert not page.text_input


def test_without_a_query_nothing_is_searched(page: AppTest) -> None:
    page.run()
    assert not page.exception
    assert not page.error
    assert page.text_input[0].value in {"", None}
    assert "Type a question" in page.caption[0].value


def test_a_query_finds_documents_with_page_and_passage(page: AppTest) -> None:
    page.run()
    page.text_input[0].set_value("zebras").run()
    assert not page.exception
    assert not page.error
    shown = texts(page.text)
    assert f"1. {HOSTILE}" in shown
    assert any(text.startswith("Zebras.") for text in shown)
    assert any(text.startswith("page 1") for text in texts(page.caption))
    assert f"/docs/{HOSTILE}.txt" in texts(page.code)


def test_documents_are_never_markup(page: AppTest) -> None:
    page.run()
    page.text_input[0].set_value("zebras").run()
    assert any(HOSTILE in text for text in texts(page.text))
    marked_up = [*page.markdown, *page.caption, *page.title, *page.header, *page.subheader, *page.info, *page.error]
    assert all("javascript" not in element.value and "script>" not in element.value for element in marked_up)
    assert all(element.language in {"", "plaintext", None} for element in page.code)


def test_the_query_stands_in_the_address(page: AppTest) -> None:
    page.query_params["q"] = "zebras"
    page.run()
    assert page.text_input[0].value == "zebras"
    assert any(HOSTILE in text for text in texts(page.text))


def test_a_folder_that_is_no_collection_is_one_sentence(
    page: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("not a collection")
    monkeypatch.setenv("LMK_RAG_COLLECTION", str(tmp_path))
    page.run()
    page.text_input[0].set_value("zebras").run()
    assert not page.exception
    assert len(page.error) == 1
    assert any(str(tmp_path) in text for text in texts(page.text)[1:])


def test_settings_are_found_from_any_folder(repository: Path, tmp_path: Path) -> None:
    """The settings beside the script win over those of the folder that Streamlit is started in."""
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text('[server]\naddress = "0.0.0.0"\n')
    (tmp_path / "probe.py").write_text(
        "import streamlit.web.bootstrap as bootstrap\n"
        "from streamlit import config\n"
        "from streamlit.web import cli\n"
        "names = ('server.address', 'server.showEmailPrompt', 'browser.gatherUsageStats', 'server.fileWatcherType',\n"
        "         'server.enableXsrfProtection', 'server.maxUploadSize', 'client.toolbarMode')\n"
        "bootstrap.run = lambda *_: print([config.get_option(name) for name in names])\n"
        "cli.main()\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    command = [sys.executable, "probe.py", "run", str(repository / "ui" / "app.py")]
    started = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path / "home"), "USERPROFILE": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert started.stdout.strip() == "['127.0.0.1', False, False, 'none', True, 200, 'minimal']"
    settings = tomllib.loads((repository / "ui/.streamlit/config.toml").read_text())
    assert settings["server"]["address"] == "127.0.0.1"
