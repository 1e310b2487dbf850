"""The Settings page: what is chosen holds for all pages, and what cannot be chosen is told."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from indexes.collection import Collection
from lmk_rag.encoding.base_model import ModelError
from lmk_rag.encoding.checkpoints import SHIPPED
from tests.ui.pages import markdown, shown_html
from ui.components.session import choices

Open = Callable[..., AppTest]
pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")


def test_another_collection_is_opened_for_all_pages(open_page: Open, tmp_path: Path) -> None:
    Collection.open(tmp_path / "other", create=True).close()
    app = open_page("settings")
    app.text_input(key="collection-folder").set_value(str(tmp_path / "other"))
    app.button(key="open-collection").click().run()
    assert not app.exception
    assert choices().collection == tmp_path / "other"
    app.switch_page("pages/search.py").run()
    assert "This collection is empty" in shown_html(app)


@pytest.mark.parametrize("page", ["search", "ask", "compare", "library", "settings"])
def test_no_page_shows_words_of_its_own_script(open_page: Open, page: str) -> None:
    assert not [each.value for each in open_page(page).markdown]  # where Streamlit puts a string that stands alone


@pytest.mark.parametrize("page", ["search", "ask", "compare", "library", "settings"])
def test_a_page_that_is_the_first_of_a_server_stands_in_the_app(
    open_page: Open, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PagesManager, "uses_pages_directory", None)  # as in a server that has just been started
    app = open_page(page)
    assert [each for each in app.html if each.value.startswith("<style")]


def test_a_file_is_no_collection(open_page: Open, collection: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    app = open_page("settings")
    app.text_input(key="collection-folder").set_value(str(tmp_path / "notes.txt"))
    app.button(key="open-collection").click().run()
    assert len(app.error) == 1
    assert choices().collection == collection


def test_model_device_and_language_model(open_page: Open) -> None:
    app = open_page("settings")
    assert "lmk: default" in shown_html(app)
    model = str(SHIPPED / "mean")
    app.text_input(key="model-name").set_value(model)
    app.selectbox(key="device").set_value("cpu")
    app.button(key="use-model").click().run()
    app.text_input(key="llm-name").set_value("ollama:qwen3")
    app.button(key="use-llm").click().run()
    assert not app.exception
    assert (choices().model, choices().device, choices().llm) == (model, "cpu", "ollama:qwen3")


def test_a_model_that_is_not_there_is_refused_when_it_is_chosen(open_page: Open, tmp_path: Path) -> None:
    app = open_page("settings")
    app.text_input(key="model-name").set_value(str(tmp_path / "no-model"))
    app.button(key="use-model").click().run()
    assert not app.exception
    assert app.text[0].value == f"There is no model folder {tmp_path / 'no-model'}: check the path."
    assert choices().model == "default"


@pytest.mark.parametrize(
    ("llm", "said"), [("acme:gpt", "is not known"), ("openai:gpt-5.5", "needs a key: set OPENAI_API_KEY")]
)
def test_a_language_model_that_cannot_be_had_is_refused_when_it_is_chosen(
    open_page: Open, llm: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    app = open_page("settings")
    app.text_input(key="llm-name").set_value(llm)
    app.button(key="use-llm").click().run()
    assert not app.exception
    assert said in app.text[0].value
    assert choices().llm == ""


def test_a_device_that_is_not_there_is_refused_when_it_is_chosen(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pick(device: str) -> None:
        raise ModelError(f"Device {device!r} cannot be used (Torch not compiled with CUDA enabled): choose auto.")

    monkeypatch.setattr("lmk_rag.encoding.network.pick_device", pick)
    app = open_page("settings")
    app.selectbox(key="device").set_value("cuda")
    app.button(key="use-model").click().run()
    assert not app.exception
    assert "This machine has no cuda device that can be used: choose auto" in app.text[0].value
    assert choices().device == "auto"


def test_the_page_says_how_long_its_settings_last(open_page: Open) -> None:
    said = markdown(open_page("settings"))
    assert "until the app is stopped" in said
    assert "LMK_RAG_COLLECTION" in said


def test_a_language_model_needs_its_provider(open_page: Open) -> None:
    app = open_page("settings")
    app.text_input(key="llm-name").set_value("qwen3")
    app.button(key="use-llm").click().run()
    assert any("write for example ollama:qwen3" in each.value for each in app.text)
    assert choices().llm == ""
    assert "nothing leaves this machine" in markdown(app)
