"""The collection's own test: a question set, and how well each pooling answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from lmk_rag.evaluation.metrics import LENGTH_NAMES, TITLES
from lmk_rag.questions import Measured, Questions, from_beir, from_csv, measure
from lmk_rag.search import Searcher
from lmk_rag.wording import count
from ui.components.markup import tag, text
from ui.components.session import attempt, key_of, path_named

_SHOWN = ("ndcg@10", "recall@10", "recall@100", "mrr@10")


@dataclass(frozen=True, slots=True)
class _Tested:
    """What came of the last test, and of what collection in what state."""

    key: tuple[str, str, int]
    questions: Questions
    measured: list[Measured]


def show_own_test(searcher: Searcher, names: Sequence[str], titles: Mapping[str, str]) -> None:
    """Show what takes a question set, and what came of the last one."""
    st.subheader("Test on your own questions", anchor=False)
    st.caption(
        "A CSV with the columns query and path (the document that answers; the end of its path is enough), or a folder "
        "in BEIR's format whose documents are in this collection. Each pooling answers by its vectors alone; near "
        "copies count as one document."
    )
    with st.form("own-test", border=True):
        left, right = st.columns(2, gap="medium")
        with left:
            file = st.file_uploader("A CSV of questions", type="csv", key="questions")
        with right:
            folder = st.text_input("Or a BEIR folder of this machine", key="beir", placeholder="~/datasets/mine")
        if st.form_submit_button("Run the test", icon=":material/play_arrow:", type="primary"):
            st.session_state.pop("tested", None)  # what fails leaves nothing that could be taken for its result
            with attempt():
                _run(searcher, _read(searcher, file, folder or ""), names)
    tested: _Tested | None = st.session_state.get("tested")
    if tested is not None:
        if tested.key != key_of(searcher):
            st.info("The collection has changed since this test: run it again.", icon=":material/info:")
        _show(tested.questions, tested.measured, titles)


def _read(searcher: Searcher, file: object, folder: str) -> Questions:
    if file is not None:
        try:
            return from_csv(file.getvalue().decode("utf-8-sig"), searcher.collection)  # type: ignore[attr-defined]
        except UnicodeDecodeError as error:
            raise ValueError("The file is not UTF-8 text: save the table as CSV (UTF-8).") from error
    if folder.strip():
        return from_beir(path_named(folder), searcher.collection)
    raise ValueError("There are no questions yet: drop a CSV, or name a folder.")


def _run(searcher: Searcher, questions: Questions, names: Sequence[str]) -> None:
    bar = st.progress(0.0, "Answering …")

    def told(done: int, every: int) -> None:
        bar.progress(done / every, "Answering …")

    measured = measure(searcher, questions, names, told)
    bar.empty()
    st.session_state.tested = _Tested(key_of(searcher), questions, measured)


def _show(questions: Questions, measured: list[Measured], titles: Mapping[str, str]) -> None:
    st.caption(f"{count(len(questions.queries), 'question')}; in brackets the 95 % interval.")
    if questions.unknown:
        listed = ", ".join(questions.unknown[:5])
        st.html(
            tag(
                "div",
                text(
                    f"{count(len(questions.unknown), 'name')} not in this collection, or in it more than once: {listed}"
                ),
                "lr-note",
            )
        )
    st.dataframe(pd.DataFrame([_cells(each, titles, len(questions.queries)) for each in measured]), hide_index=True)
    st.caption("nDCG@10 by the tokens of the document that answers, up to:")
    st.dataframe(pd.DataFrame([_length_cells(each, titles) for each in measured]), hide_index=True)
    left, right = st.columns(2, gap="medium")
    with left:
        st.altair_chart(_by_measure(measured, titles), alt="Each measure with its interval, by pooling")
    with right:
        st.altair_chart(_by_length(measured, titles), alt="nDCG@10 by the length of the document that answers")
    rows = pd.DataFrame([each.row() | _length_columns(each) for each in measured])
    st.download_button(
        "Download as CSV", rows.to_csv(index=False), "poolings.csv", "text/csv", icon=":material/download:", key="csv"
    )


def _cells(each: Measured, titles: Mapping[str, str], questions: int) -> dict[str, str]:
    row = {"pooling": titles.get(each.name, each.name)}
    for name in _SHOWN:
        row[TITLES[name]] = _cell(each.averages[name], each.intervals[name], questions)
    return row


def _cell(average: float, interval: tuple[float, float], questions: int) -> str:
    """Give an average with its interval, which one question alone does not have."""
    low, high = interval
    return f"{average:.3f} ({low:.3f} to {high:.3f})" if questions > 1 else f"{average:.3f}"


def _length_cells(each: Measured, titles: Mapping[str, str]) -> dict[str, str]:
    row = {"pooling": titles.get(each.name, each.name)}
    for name, found in each.by_length.items():
        row[f"{name} ({count(found['queries'], 'question')})"] = _cell(found["mean"], found["ci95"], found["queries"])
    return row


def _length_columns(each: Measured) -> dict[str, float]:
    row: dict[str, float] = {}
    for name, found in each.by_length.items():
        low, high = found["ci95"]
        title = f"ndcg@10 up to {name} tokens"
        row |= {title: round(found["mean"], 4), f"{title} low": round(low, 4), f"{title} high": round(high, 4)}
        row[f"questions up to {name} tokens"] = found["queries"]
    return row


def _by_measure(measured: Sequence[Measured], titles: Mapping[str, str]) -> Any:  # noqa: ANN401 - a chart; altair's own methods are untyped
    rows = [
        {
            "pooling": titles.get(each.name, each.name),
            "measure": TITLES[name],
            "value": each.averages[name],
            "low": each.intervals[name][0],
            "high": each.intervals[name][1],
        }
        for each in measured
        for name in _SHOWN
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("measure:N", title=None, sort=None),
        yOffset=alt.YOffset("pooling:N", sort=None),
        color=alt.Color("pooling:N", title=None, sort=None, legend=alt.Legend(orient="top")),
    )
    scale = alt.Scale(domain=[0, 1])
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None, scale=scale), x2="high:Q")
    points = base.mark_circle(size=70, opacity=1).encode(
        x="value:Q", tooltip=["pooling", "measure", "value", "low", "high"]
    )
    return (bars + points).properties(height=300, title="With 95 % intervals")


def _by_length(measured: Sequence[Measured], titles: Mapping[str, str]) -> Any:  # noqa: ANN401 - as above
    rows = [
        {
            "pooling": titles.get(each.name, each.name),
            "tokens": name,
            "nDCG@10": found["mean"],
            "queries": found["queries"],
        }
        for each in measured
        for name, found in each.by_length.items()
    ]
    return (
        alt.Chart(pd.DataFrame(rows, columns=["pooling", "tokens", "nDCG@10", "queries"]))
        .mark_bar()
        .encode(
            x=alt.X(
                "tokens:N", sort=list(LENGTH_NAMES), title="tokens of the document, up to", axis=alt.Axis(labelAngle=0)
            ),
            xOffset=alt.XOffset("pooling:N", sort=None),
            y=alt.Y("nDCG@10:Q", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("pooling:N", title=None, sort=None, legend=alt.Legend(orient="top")),
            tooltip=["pooling", "tokens", "nDCG@10", "queries"],
        )
        .properties(height=300, title="nDCG@10 by length")
    )
