"""The Compare page: columns, moves, a pooling indexed by a button, and the collection's own test."""

import io
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from streamlit.testing.v1 import AppTest

from indexes.collection import Collection
from ingest.pipeline import Options, ingest
from lmk_rag.langchain import LMKVectorStore
from tests.ui.conftest import FILES
from tests.ui.pages import HOSTILE, boxes, components, markdown, shown_html
from ui.components.session import jobs

Open = Callable[..., AppTest]
pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")


def test_three_columns_and_bm25_as_a_fourth(open_page: Open) -> None:
    app = open_page("compare", q="rust on the sea")
    assert [each.value for each in app.subheader][:3] == ["LMK", "CLS", "mean"]
    assert shown_html(app).count("lr-rank") == 15
    assert shown_html(app).count("lr-move") == 10
    assert components(app).count("lmk_rag_strip") == 10  # CLS keeps no evidence
    cards = boxes(app, "placed-")
    assert len(cards) == 15
    assert all(("CLS keeps no evidence" in html) == key.startswith("placed-cls-") for key, html in cards.items())
    assert not [button for button in app.button if button.label.startswith("Index ")]
    app.toggle(key="bm25").set_value(True).run()
    assert [each.value for each in app.subheader][:4] == ["LMK", "CLS", "mean", "BM25"]
    assert "not in BM25" in shown_html(app)


def test_what_a_column_opens_shows_that_columns_evidence(open_page: Open) -> None:
    app = open_page("compare", q="rust on the sea", doc="1", by="cls")
    assert "cls keeps no evidence" in shown_html(app)  # beside the cards' "CLS keeps no evidence"
    assert "cls keeps no evidence" not in shown_html(open_page("compare", q="rust on the sea", doc="1", by="mean"))
    app = open_page("compare", q="rust on the sea")
    opening = next(button for button in app.button if (button.key or "").startswith("compare-open-cls-"))
    opening.click().run()
    assert app.query_params["by"] == "cls"
    assert "at" not in app.query_params  # nothing tells where it matches


def test_the_address_opens_the_same_comparison(open_page: Open) -> None:
    app = open_page("compare", q="rust", bm25="true")
    assert "BM25" in [each.value for each in app.subheader]


def test_a_pooling_that_is_missing_is_indexed_by_a_button(open_page: Open, collection: Path) -> None:
    with Collection.open(collection) as opened, opened.write("test"):
        record = opened.encoder("cls")
        assert record is not None
        with opened.transaction() as transaction:
            transaction.drop_encoder(record.id)
    app = open_page("compare", q="rust")
    assert [each.value for each in app.subheader][:2] == ["LMK", "mean"]
    app.button(key="index-cls").click().run()
    job = jobs().current
    assert job is not None
    assert job.wait(120)
    assert job.error is None
    app.run()
    assert [each.value for each in app.subheader][:3] == ["LMK", "CLS", "mean"]
    assert "Indexing by cls: done. 5 documents embedded." in shown_html(app)


def test_documents_are_never_markup(open_page: Open) -> None:
    app = open_page("compare", q="zebras", bm25="true")
    assert escape(HOSTILE) in shown_html(app)
    assert "<script" not in shown_html(app) + markdown(app)
    assert "javascript" not in markdown(app)


def test_the_own_test_measures_each_pooling(open_page: Open) -> None:
    app = open_page("compare")
    file = io.BytesIO(b"query,path\ntides and moon,moon.txt\nrust,sea.pdf\nloaf,bread.txt\ngone,absent.pdf\n")
    app.file_uploader(key="questions").upload("questions.csv", file.getvalue(), "text/csv")
    next(button for button in app.button if button.label == "Run the test").click().run()
    assert not app.exception
    assert not app.error
    table = app.dataframe[0].value
    assert list(table["pooling"]) == ["LMK", "CLS", "mean", "BM25"]
    assert list(table.columns) == ["pooling", "nDCG@10", "recall@10", "recall@100", "MRR@10"]
    assert table.loc[3, "nDCG@10"].startswith("1.000")
    by_length = app.dataframe[1].value
    assert list(by_length.columns) == ["pooling", "512 (3 questions)"]
    assert by_length.loc[3, "512 (3 questions)"] == table.loc[3, "nDCG@10"]  # all documents are short
    assert any(each.value.startswith("3 questions") for each in app.caption)
    assert "absent.pdf" in shown_html(app)
    assert app.get("download_button")


def test_one_question_has_no_interval(open_page: Open) -> None:
    app = open_page("compare")
    app.file_uploader(key="questions").upload("questions.csv", b"query,path\nrust,sea.pdf\n", "text/csv")
    next(button for button in app.button if button.label == "Run the test").click().run()
    assert not app.error
    assert app.dataframe[0].value.loc[3, "nDCG@10"] == "1.000"
    assert app.dataframe[1].value.loc[3, "512 (1 question)"] == "1.000"


def test_a_test_that_fails_leaves_no_result_of_another(open_page: Open) -> None:
    app = open_page("compare")
    for text, tables in ((b"query,path\nrust,sea.pdf\n", 2), (b"query,path\n", 0)):
        app.file_uploader(key="questions").upload("questions.csv", text, "text/csv")
        next(button for button in app.button if button.label == "Run the test").click().run()
        assert len(app.dataframe) == tables
    assert any("The file has no questions" in each.value for each in app.text)


def test_an_own_test_without_questions_is_one_sentence(open_page: Open) -> None:
    app = open_page("compare")
    next(button for button in app.button if button.label == "Run the test").click().run()
    assert len(app.error) == 1
    assert any("drop a CSV, or name a folder" in each.value for each in app.text)


def test_near_copies_are_named_under_the_document_that_they_are_copies_of(
    open_page: Open, collection: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "moon copy.txt"
    copy.write_text(FILES["moon.txt"])
    ingest([copy], collection, Options(workers=0))
    app = open_page("compare", q="tides and moon")
    named = [html for html in boxes(app, "placed-").values() if "Also found, nearly the same: " in html]
    assert len(named) == 3  # in each column
    assert all("moon copy.txt (100% the same)" in html or "moon.txt (100% the same)" in html for html in named)


def test_vectors_from_elsewhere_are_told_and_bm25_answers(open_page: Open, tmp_path: Path) -> None:
    store = LMKVectorStore(tmp_path / "store", DeterministicFakeEmbedding(size=8))
    store.add_texts(["whales sing", "iron rusts"])
    app = open_page("compare", folder=tmp_path / "store", q="whales")
    assert not app.error
    assert "DeterministicFakeEmbedding through LangChain" in shown_html(app)
    assert [each.value for each in app.subheader][:1] == ["BM25"]
    assert not [button for button in app.button if button.label.startswith("Index ")]
    assert shown_html(app).count("lr-rank") == 1
