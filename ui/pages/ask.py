"""Ask: a conversation over the collection, whose answers cite the places that they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from urllib.parse import quote_plus

import streamlit as st

from lmk_rag.answer import Answer, Citation, stream
from lmk_rag.answering.sentences import plain
from lmk_rag.search import Searcher
from ui.components.empty import no_collection, nothing_indexed, say
from ui.components.markup import shortened, tag, text
from ui.components.session import attempt, choices, has_collection, searcher, through_app
from ui.components.strip import where
from ui.components.viewer import open_place, place, show_viewer

_QUOTE = 240
_NEAREST = "No answer, but the closest places that the search found:"
# Characters of the questions in an address: what mail programs and chats do not cut.
_LONGEST_LINK = 1800


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and what came of it."""

    question: str
    answer: Answer


def _turns() -> list[Turn]:
    """Give the conversation about the chosen collection: another one has another."""
    conversations: dict[str, list[Turn]] = st.session_state.setdefault("conversations", {})
    return conversations.setdefault(str(choices().collection), [])


def _show_answer(found: Searcher, answer: Answer, number: int) -> None:
    """Show an answer, what it rests on, and what the user should know about it."""
    st.html(tag("div", text(answer.text), "lr-answer"))
    for citation in answer.citations:
        _show_place(citation, f"cited-{number}-{citation.n}", f"{citation.n} · {_where(found, citation)}")
    if answer.nearest:
        st.html(tag("div", text(_NEAREST), "lr-note"))
    for citation in answer.nearest:
        _show_place(citation, f"near-{number}-{citation.n}", _where(found, citation))
    told = f"Written by {answer.model}, over passages of your documents." if answer.model else ""
    for note in [*answer.notes, *([told] if told else [])]:
        st.html(tag("div", text(note), "lr-note"))


def _where(found: Searcher, citation: Citation) -> str:
    return where(found.collection.get(citation.id), citation.page, citation.start)


def _show_place(citation: Citation, key: str, label: str) -> None:
    """Show a place of a document, with a button that opens it."""
    with st.container(horizontal=True, vertical_alignment="top", wrap=False, gap="small"):
        st.button(
            label,
            key=key,
            on_click=open_place,
            args=(citation.id, citation.page, citation.start, citation.end),
        )
        quoted = shortened(plain(citation.quote), _QUOTE)
        st.html(tag("div", text(citation.title or citation.path), "lr-cited") + tag("div", text(quoted), "lr-quote"))


def _answer(found: Searcher, question: str) -> Answer | None:
    """Ask, and show the text as it comes; the checked answer takes its place."""
    history = [(turn.question, turn.answer.text) for turn in _turns()]
    written = ""
    coming = st.empty()
    with attempt(), st.spinner("Reading (the first question loads the model) …"):
        for piece in stream(found, question, choices().llm or None, history):
            if isinstance(piece, Answer):
                coming.empty()
                return piece
            written += piece
            coming.html(tag("div", text(written), "lr-answer"))
    return None


def _show_conversation(found: Searcher, questions: Sequence[str]) -> None:
    for number, turn in enumerate(_turns()):
        with st.chat_message("user", avatar=":material/person:"):
            st.text(turn.question)
        with st.chat_message("assistant", avatar=":material/menu_book:"):
            _show_answer(found, turn.answer, number)
    if not questions and not _turns():
        _show_start()
    for question in questions:
        if not _ask(found, question):
            return
    _keep_link()


def _ask(found: Searcher, question: str) -> bool:
    """Ask a question and show its answer; return whether there is one."""
    with st.chat_message("user", avatar=":material/person:"):
        st.text(question)
    with st.chat_message("assistant", avatar=":material/menu_book:"):
        answer = _answer(found, question)
        if answer is not None:
            _show_answer(found, answer, len(_turns()))
            _turns().append(Turn(question, answer))
    return answer is not None


def _linked() -> list[str]:
    """Give the questions of a link that have not been asked yet: a click ends the run that asks them."""
    asked = [turn.question for turn in _turns()]
    linked = _fitting([each for each in st.query_params.get_all("question") if each.strip()])
    return linked[len(asked) :] if linked[: len(asked)] == asked else []


def _agreed(linked: Sequence[str]) -> Sequence[str]:
    """Give the questions of a link that may be asked: where a model is chosen, only once the user has said so."""
    llm = choices().llm
    whole = st.query_params.get_all("question")
    if not linked or not llm or st.session_state.get("agreed") == whole:
        return linked
    with st.container(border=True, key="linked"):
        several = len(linked) > 1
        st.html(tag("div", text("The link asks:"), "lr-note"))
        for question in linked:
            st.text(question)
        sent = f"{'They' if several else 'It'} would be sent to {llm}, with passages of your documents."
        st.html(tag("div", text(sent), "lr-note"))
        st.button("Ask", key="agree", type="primary", on_click=_agree, args=(whole,))
    return []


def _agree(whole: list[str]) -> None:
    st.session_state["agreed"] = whole


def _keep_link() -> None:
    """Put the conversation's questions into the address, so that a link asks them again."""
    kept = _fitting([turn.question for turn in _turns()])
    if kept and st.query_params.get_all("question") != kept:
        st.query_params["question"] = kept


def _fitting(questions: Sequence[str]) -> list[str]:
    """Give the last questions, as many as an address has room for, and one in any case."""
    sizes = accumulate(len(quote_plus(each)) + len("&question=") for each in reversed(questions))
    number = sum(size <= _LONGEST_LINK for size in sizes)
    return list(questions[-max(number, 1) :])


def _show_start() -> None:
    llm = choices().llm
    how = (
        f"{llm} writes the answer from passages of your documents, and each citation is checked against them."
        if llm
        else "No language model is chosen: the sentences that answer are quoted word for word, each with its page. "
        "Choose a model in Settings to have answers written."
    )
    say("Ask about your documents", f"Write a question below and press Enter. {how}")


def _show_clearing() -> None:
    if _turns() and st.button("New conversation", icon=":material/add_comment:", type="tertiary", key="clear"):
        _turns().clear()
        st.query_params.clear()
        st.rerun()


def main() -> None:
    """Show the page."""
    if not has_collection():
        no_collection()
        return
    with attempt():
        found = searcher()
        if not found.collection.count():
            nothing_indexed()
            return
        _show_clearing()
        asked = st.chat_input("Ask about your documents", key="ask")
        questions = [asked] if asked and asked.strip() else _agreed(_linked())
        if place() is None:
            _show_conversation(found, questions)
        else:
            left, right = st.columns([1, 1], gap="medium")
            with left:
                _show_conversation(found, questions)
            with right:
                show_viewer()


through_app()
main()
