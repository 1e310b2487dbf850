"""The Search page: hits with their passages, the open document, links, filters, what is said when nothing is there."""

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from indexes.collection import Collection
from ingest.pipeline import Options, ingest
from lmk_rag.search import Results, Searcher
from tests.ui.pages import HOSTILE, components, markdown, shown_html
from ui.components.strip import far_into

Open = Callable[..., AppTest]
pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")


def test_a_missing_collection_is_told_with_the_command(open_page: Open, tmp_path: Path) -> None:
    app = open_page(folder=tmp_path / "absent")
    assert "no collection here yet" in shown_html(app)
    assert str(tmp_path / "absent") in app.code[0].value
    assert "Add documents" in [button.label for button in app.button]
    assert not app.text_input


def test_an_empty_collection_says_what_to_do(open_page: Open, tmp_path: Path) -> None:
    Collection.open(tmp_path / "empty", create=True).close()
    assert "This collection is empty" in shown_html(open_page(folder=tmp_path / "empty"))


def test_without_a_query_nothing_is_searched(open_page: Open) -> None:
    app = open_page()
    assert not app.error
    assert "Search 5 documents" in shown_html(app)
    assert "Type a question" in shown_html(app)


def test_a_query_finds_documents_with_marked_words_pages_and_strips(open_page: Open, folder: Path) -> None:
    app = open_page()
    app.text_input(key="q").set_value("rust iron").run()
    html = shown_html(app)
    assert "Sea and iron" in html
    assert "2 pages" in html
    assert str(folder / "sea.pdf") in html
    assert "<mark>Rust</mark> eats the hull" in html
    assert "p. 2" in [button.label for button in app.button]
    assert components(app).count("lmk_rag_strip") == 5
    assert '"where":"Page 2"' in components(app).replace(" ", "").replace('"where":"Page2"', '"where":"Page 2"')


def test_places_in_a_document_of_one_page_are_told_by_how_far_in_they_are(open_page: Open, tmp_path: Path) -> None:
    filler = "Nothing of interest is told here, and nothing comes of it. " * 60
    words = f"{filler}Zebras graze in the morning. {filler}Zebras sleep in the evening. {filler}"
    (tmp_path / "zebras.txt").write_text(words)
    ingest([tmp_path / "zebras.txt"], tmp_path / "made", Options(poolings=("cls",), workers=0))
    app = open_page(folder=tmp_path / "made", q="zebras", doc="1")
    with Collection.open(tmp_path / "made") as opened:
        text = opened.text(1)
    for start in ("passage-1-", "found-1-"):
        labels = [button.label for button in app.button if (button.key or "").startswith(start)]
        shares = [100 * text.index(f"Zebras {word}") / len(text) for word in ("graze", "sleep")]
        for share in shares:
            assert any(abs(float(label.removesuffix(" %")) - share) < 8 for label in labels), (labels, shares)
        assert len(labels) == len({*labels}) >= 2


@pytest.mark.parametrize(("start", "characters", "told"), [(0, 10, "0 %"), (5, 40, "12 %"), (1234, 100_000, "1.2 %")])
def test_how_far_in_a_place_is(start: int, characters: int, told: str) -> None:
    assert far_into(start, characters) == told


def test_the_query_and_the_mode_stand_in_the_address(open_page: Open) -> None:
    app = open_page(q="zebras", mode="bm25")
    assert app.text_input(key="q").value == "zebras"
    assert "BM25" in shown_html(app)
    assert "Zebras" in shown_html(app)
    assert shown_html(app).count("lr-rank") == 1


def test_filters_of_the_address_narrow_the_search(open_page: Open) -> None:
    app = open_page(q="sun moon sea", type="pdf")
    assert shown_html(app).count("lr-rank") == 1
    assert "Sea and iron" in shown_html(app)
    app = open_page(q="sun moon sea", path="star")
    assert shown_html(app).count("lr-rank") == 1
    assert "Stars" in shown_html(app)


def test_what_a_link_asks_for_that_is_not_there_is_said(open_page: Open) -> None:
    app = open_page(q="sun", type="<b>xyz", mode="fuzzy")
    html = shown_html(app)
    assert "The link asks for mode fuzzy, but there is only hybrid, dense, bm25: it was left out." in html
    assert "The link asks for type &lt;b&gt;xyz, but there is only " in html
    assert "lr-rank" in html
    assert "The link asks" not in shown_html(open_page(q="sun", type="pdf", mode="bm25", pages="1", doc="1", like="2"))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"pages": "-5"}, "pages -5, which is no number of pages"),
        ({"pages": "many"}, "pages many, which is no number of pages"),
        ({"doc": "<i>"}, "doc &lt;i&gt;, and no document of this collection has that number"),
        ({"like": "9" * 30}, f"like {'9' * 30}, and no document of this collection has that number"),
    ],
)
def test_an_odd_link_is_told(open_page: Open, address: dict[str, str], said: str) -> None:
    app = open_page(q="sun", **address)
    assert f"The link asks for {said}: it was left out." in shown_html(app)
    assert "lr-rank" in shown_html(app)


def test_nothing_found_is_said(open_page: Open) -> None:
    app = open_page(q="qqqq", mode="bm25")
    assert "Nothing was found" in app.info[0].value
    assert "Filters" not in app.info[0].value
    app = open_page(q="qqqq", mode="bm25", type="pdf")
    assert "Under Filters, fewer conditions let more documents through." in app.info[0].value


def test_a_score_says_what_it_means(open_page: Open) -> None:
    assert 'title="The weight of the words that were found: 0 is none."' in shown_html(open_page(q="sun", mode="bm25"))
    assert "0 is an average one" in shown_html(open_page(q="sun"))


def test_opening_a_passage_draws_its_page_and_the_address_says_so(open_page: Open, collection: Path) -> None:
    app = open_page(q="rust hull")
    with Collection.open(collection) as opened:
        [sea] = [each.id for each in opened.documents() if each.kind == "pdf"]
    app.button(key=f"open-{sea}").click().run()
    assert not app.exception
    assert app.query_params["doc"] == str(sea)
    assert app.query_params["page"] == "2"
    assert len(app.image) == 1
    assert app.image[0].proto.imgs[0].url.endswith(".png")
    assert "Page 2 of 2" in shown_html(app)
    assert "not found on the drawn page" not in shown_html(app)
    app.button(key="previous-page").click().run()
    assert app.query_params["page"] == "1"
    assert app.button(key="previous-page").disabled
    app.button(key="close-viewer").click().run()
    assert "doc" not in app.query_params
    assert not app.image


def test_a_link_opens_the_same_place(open_page: Open, collection: Path) -> None:
    with Collection.open(collection) as opened:
        [moon] = [each.id for each in opened.documents() if each.path.endswith("moon.txt")]
        words = opened.page_texts(moon)[0]
    start = words.index("A spring tide")
    app = open_page(doc=str(moon), page="1", at=f"{start}-{start + 13}")
    assert '["A spring tide",true]' in components(app).replace(", true", ",true")


@pytest.mark.parametrize("address", [{"doc": "99"}, {"doc": "x"}, {"doc": "1", "page": "77"}, {"like": "77"}])
def test_an_address_that_names_nothing_is_no_error(open_page: Open, address: dict[str, str]) -> None:
    app = open_page(**address)
    assert not app.exception
    assert not app.error


def test_a_text_is_scrolled_to_its_mark(open_page: Open, collection: Path) -> None:
    with Collection.open(collection) as opened:
        [moon] = [each.id for each in opened.documents() if each.path.endswith("moon.txt")]
    app = open_page(q="spring tide")
    app.button(key=f"open-{moon}").click().run()
    assert "lmk_rag_reader" in components(app)
    assert "true" in components(app).partition("lmk_rag_reader")[2]


def test_a_pdf_whose_file_is_gone_shows_its_text(open_page: Open, collection: Path, folder: Path) -> None:
    with Collection.open(collection) as opened:
        [sea] = [each.id for each in opened.documents() if each.kind == "pdf"]
    moved = (folder / "sea.pdf").rename(folder / "elsewhere.pdf")
    try:
        app = open_page(doc=str(sea), page="1")
    finally:
        moved.rename(folder / "sea.pdf")
    assert "this is the text that was indexed" in shown_html(app)
    assert "Whales sing" in components(app)


def test_find_in_this_document(open_page: Open, collection: Path) -> None:
    with Collection.open(collection) as opened:
        [sea] = [each.id for each in opened.documents() if each.kind == "pdf"]
    app = open_page(doc=str(sea), page="1")
    app.text_input(key=f"find-{sea}-").set_value("rust hull").run()
    assert "<mark>Rust</mark>" in shown_html(app)
    app.button(key=f"found-{sea}-0").click().run()
    assert app.query_params["page"] == "2"
    assert "at" in app.query_params


def test_more_like_this_and_back(open_page: Open) -> None:
    app = open_page(q="zebras", mode="bm25")
    like = next(button for button in app.button if button.key and button.key.startswith("like-"))
    like.click().run()
    assert not app.exception
    assert "Documents like:" in shown_html(app)
    assert shown_html(app).count("lr-rank") == 4
    next(button for button in app.button if button.label == "Back to the search").click().run()
    assert shown_html(app).count("lr-rank") == 1


def test_more_like_this_closes_what_was_open_and_hides_the_modes(open_page: Open) -> None:
    app = open_page(q="zebras", mode="dense")
    next(button for button in app.button if button.key and button.key.startswith("open-")).click().run()
    assert "doc" in app.query_params
    next(button for button in app.button if button.key and button.key.startswith("like-")).click().run()
    assert not {"doc", "page", "at"} & {*app.query_params}
    assert not [button for button in app.button if button.key == "close-viewer"]
    assert "mode" not in [group.key for group in app.get("button_group")]
    next(button for button in app.button if button.label == "Back to the search").click().run()
    assert "cosine" in shown_html(app)  # the mode of before


def test_a_pooling_without_evidence_says_so_where_the_strip_would_be(open_page: Open, collection: Path) -> None:
    with Collection.open(collection) as opened, opened.write("test"), opened.transaction() as transaction:
        for record in opened.encoders():
            if record.pooling != "cls":
                transaction.drop_encoder(record.id)
    app = open_page(q="rust")
    assert shown_html(app).count("cls keeps no evidence") == shown_html(app).count("lr-rank") == 5
    assert "lmk_rag_strip" not in components(app)


def test_documents_are_never_markup(open_page: Open, collection: Path) -> None:
    app = open_page(q="zebras")
    assert escape(HOSTILE) in shown_html(app)
    hostile = next(button.key for button in app.button if button.key and button.key.startswith("open-"))
    app.button(key=hostile).click().run()
    assert not app.exception
    for dangerous in ("<script", "<img", "javascript:x)"):
        assert dangerous not in markdown(app)
        assert dangerous == "javascript:x)" or dangerous not in shown_html(app)
    assert "alert(1)" in components(app)


def test_a_folder_that_is_no_collection_is_one_sentence(open_page: Open, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "collection.sqlite").write_text("not a database, and longer than a header of one " * 40)
    app = open_page(folder=broken)
    assert len(app.error) == 1
    assert any(str(broken) in each.value for each in app.text)


def test_results_are_kept_until_the_collection_changes(
    open_page: Open, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []
    real = Searcher.search

    def counted(self: Searcher, *arguments: Any, **options: Any) -> Results:
        searched.append(arguments)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Searcher, "search", counted)
    app = open_page(q="moon")
    app.run()
    assert len(searched) == 1
    with Collection.open(collection) as opened, opened.write("test"), opened.transaction() as transaction:
        transaction.remove(next(each.id for each in opened.documents() if each.path.endswith("moon.txt")))
    app.run()
    assert len(searched) == 2
    assert "moon.txt" not in shown_html(app)


@pytest.mark.parametrize("asked", [{"doc": "9" * 24}, {"like": "9" * 24}, {"doc": "-3", "page": "9" * 24}])
def test_a_link_to_no_document_breaks_nothing(open_page: Open, asked: dict[str, str]) -> None:
    app = open_page(q="zebras", **asked)
    assert not app.exception
    assert "Zebras" in shown_html(app)
