"""The Library page: files in, the table, removal, indexing again, figures and the map."""

import errno
import os
import sys
import threading
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from indexes.collection import Collection
from ingest.pipeline import Options, ingest
from lmk_rag.jobs import Job
from tests.ui.pages import HOSTILE, markdown, shown_html
from ui.components.session import choose, jobs

Open = Callable[..., AppTest]
pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")


def finished(app: AppTest) -> AppTest:
    """The page after the job has ended."""
    job = jobs().current
    assert job is not None
    assert job.wait(120)
    app.run()
    assert not app.exception
    return app


def by_path(collection: Path) -> dict[str, int]:
    with Collection.open(collection) as opened:
        return {Path(each.path).name: each.id for each in opened.documents()}


def test_every_document_stands_in_the_table(open_page: Open) -> None:
    app = open_page("library")
    table = app.dataframe[0].value
    assert sorted(table["type"]) == sorted(["html", "markdown", "pdf", "text", "text"])
    assert set(table["state"]) == {"indexed"}
    assert int(table.loc[table["title"] == "Sea and iron", "pages"].iloc[0]) == 2
    assert (table["tokens"] > 0).all()
    assert "<script" not in markdown(app)


def test_files_of_one_name_are_told_apart_by_their_folder(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year in ("2023", "2024/may"):
        (tmp_path / "reports" / year).mkdir(parents=True)
        (tmp_path / "reports" / year / "report.txt").write_text(f"The report of {year}.")
    ingest([tmp_path / "reports"], tmp_path / "made", Options(poolings=("mean",), workers=0))
    selected(monkeypatch, [1])
    app = open_page("library", folder=tmp_path / "made")
    table = app.dataframe[0].value
    assert list(table.columns[:3]) == ["file", "title", "folder"]
    assert list(table["file"]) == ["report.txt", "report.txt"]
    assert list(table["folder"]) == ["2023", "2024/may"]
    assert f"Folders are those below {tmp_path / 'reports'}." in shown_html(app)
    whole = escape(str(tmp_path / "reports" / "2024" / "may" / "report.txt"))
    assert f'<div class="lr-path">{whole}</div>' in shown_html(app)


def test_remarks_are_told_in_full_under_the_table(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    for number in range(7):
        (folder / f"{number} {HOSTILE.replace('/', '')}.pdf").write_bytes(b"%PDF-1.4 nothing")
    (folder / "fine.txt").write_text("A text without a fault.")
    ingest([folder], tmp_path / "made", Options(poolings=("mean",), workers=0))
    selected(monkeypatch, [*range(8)])
    app = open_page("library", folder=tmp_path / "made")
    table = app.dataframe[0].value
    assert list(table.columns[:5]) == ["file", "title", "folder", "state", "reason"]
    [told] = [each for each in shown_html(app).splitlines() if "lr-reason" in each]
    for file, reason in zip(table["file"][:5], table["reason"][:5], strict=True):
        path = f'<div class="lr-path">{escape(str(folder / file))}</div>'
        assert path + (f'<div class="lr-reason">{escape(reason)}</div>' if reason else "") in told
    assert "not a PDF" in table["reason"][1]
    assert told.count("lr-path") == told.count("lr-reason") + 1 == 5
    assert told.endswith('<div class="lr-meta">and 3 more</div>')


def test_the_whole_path_is_looked_through(open_page: Open, folder: Path) -> None:
    assert list(open_page("library", listed=str(folder / "moon")).dataframe[0].value["file"]) == ["moon.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode elsewhere")
def test_a_name_that_is_not_utf8_stands_in_the_table(open_page: Open, tmp_path: Path, collection: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    odd = os.fsdecode(os.fsencode(folder) + b"/bad\xff name.txt")
    Path(odd).write_text("A name of another encoding.", encoding="utf-8")
    ingest([folder], collection, Options(workers=0))
    app = open_page("library")
    assert not app.error
    assert "bad\N{REPLACEMENT CHARACTER} name.txt" in app.dataframe[0].value["file"].tolist()


def test_the_table_can_be_narrowed(open_page: Open) -> None:
    app = open_page("library", listed="sea and")
    assert list(app.dataframe[0].value["title"]) == ["Sea and iron"]


def test_a_folder_is_indexed_in_the_background(open_page: Open, tmp_path: Path, collection: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "moss.txt").write_text("Moss grows on the north side of trees.")
    (more / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    app = open_page("library")
    app.text_input(key="folder").set_value(str(more))
    next(button for button in app.button if button.label == "Index this folder").click().run()
    finished(app)
    assert "1 new, 1 failed" in shown_html(app)
    assert "moss.txt" in by_path(collection)
    table = app.dataframe[0].value
    assert list(table.loc[table["state"] == "failed", "file"]) == ["broken.pdf"]
    assert "not a PDF" in table.loc[table["state"] == "failed", "reason"].iloc[0]
    app.button(key=f"put-away-{jobs().current.number}").click().run()  # type: ignore[union-attr]
    assert "1 new" not in shown_html(app)


def test_a_folder_that_is_not_there_is_one_sentence(open_page: Open, tmp_path: Path) -> None:
    app = open_page("library")
    app.text_input(key="folder").set_value(str(tmp_path / "absent"))
    next(button for button in app.button if button.label == "Index this folder").click().run()
    assert len(app.error) == 1
    assert any("There is no" in each.value and "absent" in each.value for each in app.text)


def test_a_path_that_no_file_system_takes_is_one_sentence(open_page: Open) -> None:
    app = open_page("library")
    app.text_input(key="folder").set_value("/" + "x" * 5000)
    next(button for button in app.button if button.label == "Index this folder").click().run()
    assert len(app.error) == 1
    assert (
        "longer than the file system takes: give the file, or the folders above it, shorter names." in app.text[0].value
    )
    assert "Errno" not in app.text[0].value
    assert len(app.text[0].value) < 300


def test_a_dropped_file_that_cannot_be_kept_is_one_sentence(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(folder: Path, name: str, data: bytes) -> Path:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(folder / name))

    monkeypatch.setattr("ingest.uploads.keep", keep)
    app = open_page("library")
    app.file_uploader(key="dropped").upload("long.txt", b"x", "text/plain")
    next(button for button in app.button if button.label == "Index these files").click().run()
    assert "long.txt is longer than the file system takes" in app.text[0].value
    assert "Errno" not in app.text[0].value


def test_the_first_documents_make_the_collection(open_page: Open, folder: Path, tmp_path: Path) -> None:
    app = open_page("library", folder=tmp_path / "new")
    app.text_input(key="folder").set_value(str(folder / "moon.txt"))
    next(button for button in app.button if button.label == "Index this folder").click().run()
    finished(app)
    assert list(by_path(tmp_path / "new")) == ["moon.txt"]


@pytest.mark.parametrize("has_vectors", [False, True])
def test_a_collection_without_vectors_is_made_with_the_chosen_model(
    open_page: Open, folder: Path, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_vectors: bool
) -> None:
    asked: list[Options] = []
    monkeypatch.setattr("lmk_rag.job_process.ingest", lambda paths, where, options, *rest: asked.append(options))
    Collection.open(tmp_path / "empty", create=True).close()  # as the first ingest leaves it that is cancelled
    app = open_page("library", folder=collection if has_vectors else tmp_path / "empty")
    choose(model="some/model")
    app.text_input(key="folder").set_value(str(folder / "moon.txt"))
    next(button for button in app.button if button.label == "Index this folder").click().run()
    finished(app)
    assert [each.settings.model for each in asked] == [None if has_vectors else "some/model"]


def test_another_writer_is_named(open_page: Open, folder: Path, collection: Path) -> None:
    app = open_page("library")
    with Collection.open(collection) as opened, opened.write("ingest elsewhere"):
        app.text_input(key="folder").set_value(str(folder))
        next(button for button in app.button if button.label == "Index this folder").click().run()
        finished(app)
    assert app.error[0].value == "The collection is being written."
    assert any("ingest elsewhere" in each.value for each in app.text)


def test_figures_and_map(open_page: Open) -> None:
    app = open_page("library", tab="Collection")
    assert {each.label: each.value for each in app.metric}["Documents"] == "5"
    assert sorted(app.dataframe[0].value["pooling"]) == ["cls", "lmk", "mean"]
    app = open_page("library", tab="Map")
    assert len(app.get("vega_lite_chart")) + len(app.get("arrow_vega_lite_chart")) == 1


def test_a_running_job_shows_how_far_it_is_and_can_be_cancelled(open_page: Open) -> None:
    told = threading.Event()

    def work(job: Job[object]) -> bool:
        job.start(4, 400)
        job.finished(1, 100)
        job.message(HOSTILE)
        told.set()
        return job.stop.wait(120)

    job = jobs().begin("Indexing papers", work)
    assert told.wait(120)
    app = open_page("library")
    html = shown_html(app)
    assert "Indexing papers \u2026" in html
    assert "1 of 4 documents" in html
    assert escape(HOSTILE) in html
    assert [each.proto.value for each in app.get("progress")] == [25]
    assert next(button for button in app.button if button.label == "Index this folder").disabled
    app.button(key=f"cancel-{job.number}").click().run()
    finished(app)
    assert "Indexing papers: cancelled, 3 documents left." in shown_html(app)


def selected(monkeypatch: pytest.MonkeyPatch, rows: list[int]) -> None:
    """Let the table answer as if these rows were selected, which AppTest cannot do."""
    monkeypatch.setattr("ui.components.documents.selected_rows", lambda event: rows)


def test_a_selected_document_is_opened_and_its_removal_asked_about(
    open_page: Open, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selected(monkeypatch, [0])
    app = open_page("library", listed="moon")
    app.button(key="remove-selected").click().run()
    assert not app.exception
    assert app.button(key="confirm-removal")  # in a dialog, whose button AppTest cannot press: the browser test does
    assert "moon.txt" in by_path(collection)
    app.button(key="open-selected").click().run()
    assert app.query_params["doc"] == str(by_path(collection)["moon.txt"])


def test_a_selected_document_is_indexed_again(
    open_page: Open, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    selected(monkeypatch, [0])
    app = open_page("library", listed="moon")
    with Collection.open(collection) as opened:
        before = opened.generation
    app.button(key="reindex-selected").click().run()
    finished(app)
    assert "1 updated" in shown_html(app)
    with Collection.open(collection) as opened:
        assert opened.generation > before
