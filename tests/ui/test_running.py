"""A job as the page shows it: its progress within a batch, and what is said when it has ended."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ingest.pipeline import Options, Report, ingest
from lmk_rag.indexing import Settings
from lmk_rag.jobs import Job
from tests.ui.pages import HOSTILE, boxes, shown_html
from ui.components.running import Relay
from ui.components.session import jobs

Open = Callable[..., AppTest]
pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")


class Watched(Job[object]):
    """A job that keeps how far it was after each piece of work."""

    def __init__(self) -> None:
        super().__init__("Indexing", lambda job: None)
        self.shares: list[float] = []

    def tokens(self, count: int) -> None:
        super().tokens(count)
        self.shares.append(self.state().share)


def test_an_ingest_moves_while_a_long_document_is_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmk_rag.indexing._CHARACTERS_A_POSITION", 1)  # each file is a batch
    monkeypatch.setattr("ui.components.running._CHARACTERS_A_POSITION", 2.0)  # the tiny vocabulary has 1
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"Iron {name} rusts in wet air, and the sea eats the hull. " * 600)
    job = Watched()
    options = Options(poolings=("lmk",), settings=Settings(device="cpu"), workers=0)
    report = ingest([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "collection", options, Relay(job))
    assert report.indexed == 2
    second = [share for share in job.shares if share > 0.5]
    assert len(second) >= 4
    assert second == sorted(set(second))  # it moves with each piece: the first file has told how many there are
    assert second[0] < 0.7
    assert second[-1] == pytest.approx(1, abs=0.02)
    assert [share for share in job.shares if 0 < share < 0.5]
    assert job.shares == sorted(job.shares)


def ended(work: Callable[[Job[object]], object], title: str = "Indexing papers") -> Job[object]:
    job = jobs().begin(title, work)
    assert job.wait(120)
    return job


def test_a_job_that_ended_well_is_one_line_and_goes_by_itself(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(lambda job: Report(indexed=3, unchanged=2, warnings=[("/a", "x"), ("/a", "y")], seconds=4.2), HOSTILE)
    app = open_page("library")
    [line] = [each.value for each in app.html if each.value.startswith('<div class="lr-note lr-done"')]
    assert "done. 3 new, 2 unchanged, 1 with remarks, in 4 s." in line
    assert "<script" not in line
    assert not [button for button in app.button if button.label == "Close"]
    assert not app.expander[0].label.startswith("Why")
    monkeypatch.setattr("ui.components.running._TOLD_FOR", 0.0)
    app.run()
    assert 'class="lr-note lr-done"' not in shown_html(app)


def test_a_job_that_failed_stays_with_its_reason_until_it_is_put_away(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.components.running._TOLD_FOR", 0.0)

    def work(job: Job[object]) -> object:
        raise ValueError("The model is missing: run `make setup`.")

    job = ended(work)
    app = open_page("library")
    app.run()
    assert "The model is missing: run `make setup`." in [each.value for each in app.text]
    app.button(key=f"put-away-{job.number}").click().run()
    assert not app.error
    assert jobs().current is None


def test_files_that_could_not_be_read_stay_with_their_reasons(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.components.running._TOLD_FOR", 0.0)
    ended(lambda job: Report(indexed=1, failed=[("/a.pdf", "not a PDF")], seconds=1.0))
    app = open_page("library")
    assert "1 new, 1 failed" in shown_html(app)
    assert "not a PDF" in shown_html(app)
    assert app.expander[0].label == "Why 1 file could not be read"


def test_each_job_has_a_box_of_its_own(open_page: Open) -> None:
    go_on = threading.Event()
    first = jobs().begin("Indexing papers", lambda job: go_on.wait(120))
    app = open_page("library")
    assert list(boxes(app, "job-")) == [f"job-{first.number}"]
    assert app.button(key=f"cancel-{first.number}")
    go_on.set()
    assert first.wait(120)
    go_on.clear()
    second = jobs().begin("Indexing more", lambda job: go_on.wait(120))
    app.run()
    assert list(boxes(app, "job-")) == [f"job-{second.number}"]
    assert "Indexing papers" not in shown_html(app)
    go_on.set()
    assert second.wait(120)
