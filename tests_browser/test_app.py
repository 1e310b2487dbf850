"""One visit from an empty collection to a removed document, in a real browser with the real model.

The steps build on each other and run in the order in which they stand.
"""

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect
from reportlab.pdfgen.canvas import Canvas

from indexes.collection import Collection
from tests_browser.conftest import PATIENCE, App, Watched

OpenWindow = Callable[..., Watched]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> $x$ [a](javascript:alert(3)) **bold**"
SENTENCES = {
    "whales": ("Whales sing in the deep sea.", "They breathe air through a blowhole on top of the head."),
    "iron": ("Iron rusts in wet air.", "The hull of a ship is painted with red lead to keep the rust away."),
    "bread": ("Dough rises while yeast feeds.", "A hot stone gives the loaf its dark crust."),
}
TRIES = 5
QUERY = "how is a ship kept from rusting"

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PDFs of three pages and texts, one of which tries to be markup."""
    folder = tmp_path_factory.mktemp("files")
    for name, (first, second) in SENTENCES.items():
        canvas = Canvas(str(folder / f"{name}.pdf"), invariant=1)
        canvas.setTitle(f"About {name}")
        for page in (first, f"More about {name}: " + first, second):
            canvas.drawString(72, 700, page)
            canvas.showPage()
        canvas.save()
    (folder / "tides.txt").write_text("The tides follow the moon.\n" * 40 + "A spring tide comes at full moon.\n")
    (folder / "hostile.txt").write_text(f"{HOSTILE}\n\nZebras graze on the plain. {HOSTILE}\n")
    return folder


def wait_for_job(page: Page) -> None:
    """Wait until the job has ended, which a line says."""
    expect(page.locator(".lr-done")).to_be_visible()


def press(page: Page, name: str | re.Pattern[str]) -> None:
    page.get_by_role("button", name=name).first.click()


def type_by_key(page: Page, query: str) -> None:
    """Press "/" and type, again where nothing came of it: a box that is just being drawn loses the focus."""
    box = page.get_by_placeholder("A question, or a few words")
    for _ in range(TRIES):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("/")
        with contextlib.suppress(AssertionError):
            expect(box).to_be_focused(timeout=2000)
            page.keyboard.type(query)
            expect(box).to_have_value(query, timeout=2000)
            return
    expect(box).to_have_value(query, timeout=100)


def shown_page(page: Page, app: App) -> Image.Image:
    """The picture of the open document's page, as the browser got it."""
    image = page.locator(".st-key-viewer img, [role=dialog] img").first
    expect(image).to_be_visible()
    response = page.request.get(image.evaluate("image => image.src"))
    return Image.open(io.BytesIO(response.body())).convert("RGB")


def yellow(picture: Image.Image) -> int:
    """Pixels of a highlighter's yellow."""
    red, green, blue = np.moveaxis(np.asarray(picture), -1, 0)
    return int(((red > 240) & (green > 200) & (blue < 130)).sum())


def test_0_the_first_visit_may_be_to_any_page(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.go("/library")
    expect(page.get_by_role("link", name="Compare", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="app", exact=True)).to_have_count(0)


def test_1_the_empty_app_says_what_to_do_and_indexes_a_folder(open_window: OpenWindow, folder: Path) -> None:
    window = open_window()
    page = window.go("/")
    expect(page.get_by_text("There is no collection here yet")).to_be_visible()
    press(page, "Add documents")
    page.get_by_label("Or name a file or folder of this machine").fill(str(folder))
    press(page, "Index this folder")
    wait_for_job(page)
    expect(page.get_by_text("5 new")).to_be_visible()
    expect(page.get_by_text("5 rows of 5")).to_be_visible()
    window.shot("library")


def test_2_search_by_keyboard_and_open_a_highlighted_page(open_window: OpenWindow, app: App) -> None:
    window = open_window()
    page = window.go("/")
    expect(page.get_by_text("Search 5 documents")).to_be_visible()
    page.wait_for_selector("html[data-keys=ready]", state="attached")
    type_by_key(window.settled(), QUERY)
    page.keyboard.press("Enter")
    expect(page.locator(".lr-title").filter(has_text="About iron")).to_be_visible()
    expect(page.locator(".lr-passage mark").filter(has_text="ship").first).to_be_visible()
    assert "q=how+is+a+ship" in page.url
    window.shot("search")

    card = page.locator("[class*=st-key-hit-]").filter(has_text="About iron")
    bar = card.locator(".bar")
    bar.hover()
    expect(card.locator(".hint")).to_contain_text("Page")
    card.get_by_role("button", name="Open page").click()
    assert yellow(shown_page(page, app)) > 1000
    assert "page=3" in page.url
    window.shot("search-open")

    window.settled().locator(".st-key-previous-page button").first.click()
    expect(page.get_by_text("Page 2 of 3")).to_be_visible()
    window.settled()
    second_page = page.url
    box = bar.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)
    expect(page.get_by_text("Page 1 of 3")).to_be_visible()

    other = open_window(390, dark=True)
    other.page.goto(page.url)  # a link opens the same result and the same place
    expect(other.page.get_by_text("Page 1 of 3")).to_be_visible()
    expect(other.page.locator(".lr-title").filter(has_text="About iron").first).to_be_visible()
    wide = other.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    other.shot("search-open-390-dark")

    page.go_back()  # one step, to the place before
    expect(page.get_by_text("Page 2 of 3")).to_be_visible()
    assert page.url == second_page


def test_2_more_like_this_closes_the_page_and_begins_at_the_top(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.go("/?q=" + QUERY.replace(" ", "+"))
    press(page, "Open page")
    expect(page.locator(".st-key-viewer")).to_be_visible()
    window.settled()
    page.get_by_role("button", name="More like this").last.click()
    expect(page.get_by_text("Documents like: ")).to_be_in_viewport()
    expect(page.locator(".st-key-viewer")).to_have_count(0)
    expect(page.get_by_text("bm25", exact=True)).to_have_count(0)
    window.shot("like")


def test_2_what_a_lower_hit_opens_is_in_sight(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.go("/?q=iron+sea+air+water+bread")
    opening = page.locator("[class*=st-key-hit-]").last.get_by_role("button", name=re.compile("^Open"))
    opening.click()
    viewer = page.locator(".st-key-viewer")
    expect(viewer).to_be_visible()
    window.settled()
    opening.scroll_into_view_if_needed()
    expect(opening).to_be_in_viewport()
    expect(viewer.get_by_role("button", name="Close")).to_be_in_viewport()


def test_2_the_query_goes_along_to_compare_and_back(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.go("/?q=wet+air")
    box = page.locator(".st-key-q input")
    for name, path in (("Compare", "/compare?q=wet+air"), ("Search", "/?q=wet+air")):
        window.settled()
        page.get_by_role("link", name=name, exact=True).click()
        expect(page).to_have_url(window.address + path)
        expect(box).to_have_value("wet air")
    window.go("/compare?q=yeast")  # what a link says goes first
    expect(box).to_have_value("yeast")


def test_3_a_hostile_document_is_text_everywhere(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.go("/?q=zebras+graze")
    expect(page.locator(".lr-title").filter(has_text="<script>alert(1)</script>").first).to_be_visible()
    card = page.locator("[class*=st-key-hit-]").filter(has_text="Zebras graze")
    card.get_by_role("button", name="Open", exact=True).click()
    expect(page.locator(".page")).to_contain_text("[a](javascript:alert(3)) **bold**")
    assert page.locator(".stMain a[href^=javascript]").count() == 0
    assert page.locator(".stMain .katex").count() == 0
    assert page.locator(".stMain img[src=x]").count() == 0


def test_4_ask_and_open_a_citation(open_window: OpenWindow, app: App) -> None:
    window = open_window()
    page = window.go("/ask")
    expect(page.get_by_text("No language model is chosen")).to_be_visible()
    page.get_by_placeholder("Ask about your documents").fill("What is the hull of a ship painted with?")
    page.keyboard.press("Enter")
    expect(page.locator(".lr-answer")).to_contain_text("red lead")
    page.locator("[class*=st-key-cited-] button").first.click()
    assert yellow(shown_page(page, app)) > 1000
    window.shot("ask")


def test_5_compare_three_poolings_and_test_them(open_window: OpenWindow, tmp_path: Path) -> None:
    window = open_window()
    page = window.go("/compare")
    page.get_by_text("The same query, by each pooling").wait_for()
    for name in ("CLS", "mean"):  # LMK is the default, and has been indexed
        window.settled()
        page.get_by_role("button", name=f"Index {name} (5 documents)").click()
        expect(page.get_by_text(f"Indexing by {name.lower()}: done. 5 documents embedded.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Index .* documents"))).to_have_count(0)
    window.go("/compare?q=" + QUERY.replace(" ", "+"))
    for name in ("LMK", "CLS", "mean"):
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(page.locator(".lr-move")).to_have_count(10)
    questions = tmp_path / "questions.csv"
    questions.write_text("query,path\nship rust,iron.pdf\nfull moon,tides.txt\nyeast and dough,bread.pdf\n")
    page.locator("input[type=file]").set_input_files(questions)
    expect(page.get_by_text("questions.csv")).to_be_visible()
    press(page, "Run the test")
    expect(page.get_by_text("3 questions; in brackets")).to_be_visible()
    with page.expect_download() as download:
        page.locator(".st-key-csv button").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("pooling,ndcg@10,ndcg@10 low,ndcg@10 high,")
    assert [line.partition(",")[0] for line in lines[1:]] == ["lmk", "cls", "mean", "bm25"]
    window.shot("compare")


def test_6_the_map_and_settings(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.go("/library")
    page.get_by_role("tab", name="Map").click()
    point = page.locator("[data-testid=stVegaLiteChart] path[aria-roledescription=circle][aria-label*='About iron']")
    expect(point).to_be_visible()
    window.shot("map")
    point.hover()
    expect(page.locator("#vg-tooltip-element")).to_contain_text("About iron")
    point.click()
    opened = page.get_by_role("dialog")
    expect(opened.locator(".lr-title")).to_have_text("About iron")
    expect(opened.locator("img")).to_be_visible()
    assert "doc=" in page.url
    window.shot("map-open")
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    point.click()  # the same one opens again
    expect(opened.locator(".lr-title")).to_have_text("About iron")
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)
    page = window.go("/settings")
    expect(page.get_by_role("heading", name="Language model")).to_be_visible()
    window.shot("settings")


@pytest.mark.parametrize("dark", [False, True])
def test_6_a_button_can_be_read(open_window: OpenWindow, *, dark: bool) -> None:
    button = open_window(dark=dark).go("/settings").locator(".st-key-use-model button")
    colors = button.evaluate("e => [getComputedStyle(e.querySelector('p')).color, getComputedStyle(e).backgroundColor]")
    dim, bright = sorted(luminance(each) for each in colors)
    assert (bright + 0.05) / (dim + 0.05) >= 4.5, colors


def luminance(color: str) -> float:
    """The relative luminance of a computed colour, rgb(r, g, b), as WCAG 2 defines it."""
    parts = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_6_everything_is_embedded_anew_once_that_is_confirmed(open_window: OpenWindow) -> None:
    window = open_window()
    page = window.go("/library?tab=Collection")
    press(page, "Embed everything anew")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("5 documents will be read by the model default")
    window.shot("anew")
    dialog.get_by_role("button", name="Embed anew").click()
    expect(dialog).to_have_count(0)
    wait_for_job(page)
    expect(page.locator(".lr-done")).to_contain_text("Embedding everything anew: done.")


def select_bread(page: Page) -> Locator:
    """Select the row of one document in the Library; give the button that removes it."""
    expect(page.get_by_text("1 row of 5")).to_be_visible()
    table = page.locator("[data-testid=stDataFrame]")
    table.locator("canvas").first.wait_for()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 17, box["y"] + 53)  # the box before the first row, which is drawn on a canvas
    remove = page.locator(".st-key-remove-selected button")
    expect(remove).to_be_enabled()
    return remove


def test_7_nothing_is_removed_while_another_writes(open_window: OpenWindow, app: App) -> None:
    page = open_window().go("/library?listed=bread")
    with Collection.open(app.collection) as collection, collection.write("ingest"):
        select_bread(page).click()
        page.locator(".st-key-confirm-removal button").click()
        expect(page.get_by_role("dialog")).to_contain_text("The collection is being written.")
        expect(page.get_by_role("dialog")).to_contain_text("(ingest, since")
        assert collection.count() == 5


def test_7_remove_a_document(open_window: OpenWindow, app: App, folder: Path) -> None:
    window = open_window()
    page = window.go("/library?listed=bread")
    select_bread(page).click()
    page.locator(".st-key-confirm-removal button").click()
    expect(page.get_by_text("0 rows of 4")).to_be_visible()
    with Collection.open(app.collection) as collection:
        assert sorted(Path(each.path).name for each in collection.documents()) == [
            "hostile.txt", "iron.pdf", "tides.txt", "whales.pdf",
        ]  # fmt: skip
    assert (folder / "bread.pdf").exists()


@pytest.mark.parametrize("width", [1280, 390])
def test_8_every_page_fits_its_window(open_window: OpenWindow, width: int) -> None:
    window = open_window(width)
    for path in ("/?q=moon", "/ask", "/compare?q=moon", "/library", "/settings"):
        page = window.go(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        window.shot(f"{path.partition('?')[0].strip('/') or 'search'}-{width}")


def test_9_a_server_that_has_ended_says_how_to_start_it(open_window: OpenWindow, app: App) -> None:
    window = open_window()
    page = window.go("/settings")
    app.process.terminate()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("lmk-rag ui")
    expect(dialog).to_contain_text("streamlit run ui/app.py")
    expect(dialog).not_to_contain_text("yourscript")
    window.shot("gone")
    page.goto("about:blank")
    window.wrong.clear()  # of the connection that was cut
