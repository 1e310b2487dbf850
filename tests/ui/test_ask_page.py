"""The Ask page: answers with citations that open their place, a conversation, a model that streams."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lmk_rag.answer import NOT_FOUND, Answer, Citation
from tests.ui.pages import HOSTILE, markdown, shown_html
from ui.components.session import choose

Open = Callable[..., AppTest]
pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")


def answered(*pieces: str | Answer) -> Callable[..., Iterator[str | Answer]]:
    def stream(*arguments: object, **options: object) -> Iterator[str | Answer]:
        yield from pieces

    return stream


def test_the_empty_page_says_what_no_model_does(open_page: Open) -> None:
    app = open_page("ask")
    assert "No language model is chosen" in shown_html(app)


def test_a_question_is_answered_by_quotes_that_open_their_place(open_page: Open) -> None:
    app = open_page("ask")
    app.chat_input[0].set_value("What do the tides follow?").run()
    assert not app.exception
    assert not app.error
    [question, answer] = app.chat_message
    assert question.text[0].value == "What do the tides follow?"
    assert shown_html(app)
    assert answer is not None


def test_citations_open_the_page_with_the_quote(
    open_page: Open, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexes.collection import Collection

    with Collection.open(collection) as opened:
        [sea] = [each for each in opened.documents() if each.kind == "pdf"]
        page = opened.page_texts(sea.id)[1]
    start = page.index("Rust eats")
    quote = page[start : start + 18]
    cited = Citation(1, sea.id, sea.path, 2, start, start + 18, quote, sea.title)
    final = Answer("Rust does [1].", True, (cited,), "tiny:model", ("One doubt.",))
    monkeypatch.setattr("lmk_rag.answer.stream", answered("Rust ", "does.", final))
    app = open_page("ask")
    app.chat_input[0].set_value("What eats the hull?").run()
    html = shown_html(app)
    assert "Rust does [1]." in html
    assert quote in html
    assert "One doubt." in html
    assert "Written by tiny:model" in html
    assert app.query_params["question"] == "What eats the hull?"
    app.button(key="cited-0-1").click().run()
    assert not app.exception
    assert len(app.image) == 1
    assert app.query_params["page"] == "2"
    assert "Rust does [1]." in shown_html(app)


def test_a_place_in_a_text_of_one_page_is_told_by_how_far_in_it_is(
    open_page: Open, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexes.collection import Collection

    with Collection.open(collection) as opened:
        [moon] = [each for each in opened.documents() if each.path.endswith("moon.txt")]
        text = opened.page_texts(moon.id)[0]
    start = text.index("A spring tide")
    cited = Citation(1, moon.id, moon.path, 1, start, start + 13, "A spring tide", moon.title)
    monkeypatch.setattr("lmk_rag.answer.stream", answered(Answer("Then [1].", True, (cited,), "tiny:model")))
    app = open_page("ask")
    app.chat_input[0].set_value("When?").run()
    assert app.button(key="cited-0-1").label == f"1 · {100 * start / len(text):.0f} %"


def test_the_history_goes_with_the_next_question(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[tuple[str, str]]]] = []

    def stream(searcher: object, question: str, llm: object, history: list[tuple[str, str]]) -> Iterator[Answer]:
        asked.append((question, list(history)))
        yield Answer(f"To {question}", True)

    monkeypatch.setattr("lmk_rag.answer.stream", stream)
    app = open_page("ask")
    app.chat_input[0].set_value("one").run()
    app.chat_input[0].set_value("two").run()
    assert asked == [("one", []), ("two", [("one", "To one")])]
    app.button(key="clear").click().run()
    assert not app.chat_message


def test_a_link_asks_its_question_once(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def stream(searcher: object, question: str, *rest: object) -> Iterator[Answer]:
        asked.append(question)
        yield Answer("An answer.", True)

    monkeypatch.setattr("lmk_rag.answer.stream", stream)
    app = open_page("ask", question="why")
    app.run()
    assert asked == ["why"]
    assert "An answer." in shown_html(app)


def test_a_link_holds_the_conversation_and_asks_it_again_in_order(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, list[str]]] = []

    def stream(searcher: object, question: str, llm: object, history: list[tuple[str, str]]) -> Iterator[Answer]:
        asked.append((question, [before for before, _ in history]))
        yield Answer(f"To {question}", True)

    monkeypatch.setattr("lmk_rag.answer.stream", stream)
    app = open_page("ask")
    for question in ("one & two", "three?"):
        app.chat_input[0].set_value(question).run()
    link = app.query_params["question"]
    assert link == ["one & two", "three?"]
    asked.clear()
    again = open_page("ask", question=link)
    assert asked == [("one & two", []), ("three?", ["one & two"])]
    assert [each.text[0].value for each in again.chat_message[::2]] == ["one & two", "three?"]
    again.run()
    assert len(asked) == 2


def test_a_link_that_was_interrupted_goes_on(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def stream(searcher: object, question: str, *rest: object) -> Iterator[Answer]:
        asked.append(question)
        if len(asked) == 2:
            raise ValueError("interrupted")
        yield Answer(f"To {question}", True)

    monkeypatch.setattr("lmk_rag.answer.stream", stream)
    app = open_page("ask", question=["one", "two", "three"])
    app.run()
    assert asked == ["one", "two", "two", "three"]


def test_a_link_stays_short_and_keeps_the_last_questions(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmk_rag.answer.stream", answered(Answer("Yes.", True)))
    app = open_page("ask")
    asked = [f"{number} " + "\u00e4" * 100 for number in range(5)]  # a letter takes six characters of an address
    for question in asked:
        app.chat_input[0].set_value(question).run()
    assert app.query_params["question"] == asked[-2:]


def test_the_closest_places_are_shown_as_no_answer_and_open(open_page: Open) -> None:
    app = open_page("ask")
    app.chat_input[0].set_value("Which zeppelin follows the moon over Zanzibar?").run()
    html = shown_html(app)
    assert NOT_FOUND in html
    assert "No answer, but the closest places" in html
    assert not [each for each in app.button if str(each.key).startswith("cited-")]
    near = [each for each in app.button if str(each.key).startswith("near-0-")]
    assert 1 <= len(near) <= 3
    near[0].click().run()
    assert not app.exception
    assert app.query_params["at"]


def test_each_collection_has_a_conversation_of_its_own(
    open_page: Open, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copytree(collection, tmp_path / "other")
    histories: list[list[str]] = []

    def stream(searcher: object, question: str, llm: object, history: list[tuple[str, str]]) -> Iterator[Answer]:
        histories.append([before for before, _ in history])
        yield Answer(f"To {question}", True)

    monkeypatch.setattr("lmk_rag.answer.stream", stream)
    app = open_page("ask")
    app.chat_input[0].set_value("one").run()
    choose(collection=other)
    app.query_params.clear()  # as the way through Settings does
    app.run()
    assert not app.chat_message
    app.chat_input[0].set_value("two").run()
    choose(collection=collection)
    app.query_params.clear()
    app.run()
    assert [each.text[0].value for each in app.chat_message[::2]] == ["one"]
    assert histories == [[], []]


def test_a_link_sends_nothing_to_a_model_before_the_user_says_so(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []

    def stream(searcher: object, question: str, llm: str | None, history: object) -> Iterator[Answer]:
        asked.append((question, llm))
        yield Answer(f"To {question}", True)

    monkeypatch.setattr("lmk_rag.answer.stream", stream)
    app = open_page("ask")
    choose(llm="ollama:tiny")
    app.query_params["question"] = ["one", HOSTILE]
    app.run()
    assert asked == []
    assert [each.value for each in app.text] == ["one", HOSTILE]
    assert "They would be sent to ollama:tiny" in shown_html(app)
    app.button(key="agree").click().run()
    assert asked == [("one", "ollama:tiny"), (HOSTILE, "ollama:tiny")]
    app.run()
    assert len(asked) == 2
    assert not [each for each in app.button if each.key == "agree"]


def test_an_answer_is_never_markup(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    cited = Citation(1, 1, HOSTILE, 1, 0, 5, HOSTILE, HOSTILE)
    monkeypatch.setattr("lmk_rag.answer.stream", answered(HOSTILE, Answer(HOSTILE, True, (cited,), None, (HOSTILE,))))
    app = open_page("ask")
    app.chat_input[0].set_value(HOSTILE).run()
    assert not app.exception
    assert "<script" not in shown_html(app)
    assert "script" not in markdown(app)
    assert "javascript" not in markdown(app)
    assert app.chat_message[0].text[0].value == HOSTILE


def test_an_error_is_one_sentence(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def stream(*arguments: object) -> Iterator[Answer]:
        yield from ()
        raise OSError(os.strerror(28))

    monkeypatch.setattr("lmk_rag.answer.stream", stream)
    app = open_page("ask")
    app.chat_input[0].set_value("why").run()
    assert not app.exception
    assert [each.value for each in app.error] == ["That did not work."]
    assert app.text[-1].value == os.strerror(28)
