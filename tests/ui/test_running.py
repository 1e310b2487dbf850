"""A job as the page shows it: its progress within a batch, and what is said when it has ended."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from indexes.collection import Collection
from ingest.pipeline import Options, Report, ingest
from lmk_rag.indexing import Settings
from lmk_rag.jobs import Job
from lmk_rag.upkeep import add_pooling
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


def test_the_message_follows_what_happens() -> None:
    job: Job[object] = Job("Indexing", lambda job: None)
    relay = Relay(job, between="Reading files …")

    def last(happens: Callable[..., None], *values: object) -> str:
        happens(*values)
        return job.state().messages[-1]

    assert last(relay.message, "Loading the model …") == "Loading the model …"
    relay.start(3, 300)
    assert last(relay.embedding, 100, 50) == "Embedding …"  # now, and not only once the first piece is done
    assert last(relay.tokens, 40) == "Embedding …"
    assert last(relay.finished, 1, 100) == "Reading files …"
    assert last(relay.embedding, 200, 50) == "Embedding …"
    assert last(relay.finished, 2, 200) == "Finishing …"
    assert last(relay.message, "Embedding 2 documents that lack a vector …") == job.state().messages[-1]
    assert last(relay.tokens, 40) == "Embedding 2 documents that lack a vector …"


def test_the_message_of_a_pooling_more_follows_too() -> None:
    job: Job[object] = Job("Indexing by cls", lambda job: None)
    relay = Relay(job)
    relay.message("Loading the model …")
    relay.start(2, 200)
    said = []
    for happens, values in ((relay.embedding, (100, 100)), (relay.tokens, (9,)), (relay.finished, (1, 100))):
        happens(*values)
        said.append(job.state().messages[-1])
    assert said == ["Embedding …"] * 3  # no file is read between its batches


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


def test_a_job_that_was_ended_in_the_middle_of_a_batch_tells_what_is_done_and_what_is_left(open_page: Open) -> None:
    def work(job: Job[object]) -> None:
        job.start(40, 4000)
        job.finished(3, 300)
        job.cancel()

    ended(work)
    assert "Indexing papers: cancelled, 37 documents left. 3 documents done." in shown_html(open_page("library"))


def test_another_window_that_asks_for_work_is_told_what_runs(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.components.documents.selected_rows", lambda event: [0])
    go_on = threading.Event()
    app = open_page("library")
    job = jobs().begin("Indexing papers", lambda job: go_on.wait(120))
    app.button(key="reindex-selected").click().run()
    assert app.text[0].value == "Indexing papers is still running: wait for it to end, or cancel it."
    assert list(boxes(app, "job-")) == [f"job-{job.number}"]
    app.run()
    assert not app.error
    go_on.set()
    assert job.wait(120)


@pytest.fixture
def _written(collection: Path, repository: Path) -> Iterator[None]:
    """A process that writes to the collection, as that of a job does."""
    code = (
        "import sys\n"
        "from indexes.collection import Collection\n"
        "with Collection.open(sys.argv[1]) as opened, opened.write('ingest'):\n"
        "    print('holds', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(collection)]
    with subprocess.Popen(command, cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        yield


@pytest.mark.usefixtures("_written")
def test_what_writes_beside_a_job_gets_the_sentence_of_the_lock(
    open_page: Open, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.components.documents.selected_rows", lambda event: [0])
    app = open_page("library")
    app.button(key="reindex-selected").click().run()
    assert [each.value for each in app.error] == ["The collection is being written."]
    assert "is being written by process" in app.text[0].value
    assert "(ingest, since" in app.text[0].value
    removing = AppTest.from_function(_remove, default_timeout=120).run()
    assert not removing.exception
    assert "is being written by process" in removing.text[0].value
    with Collection.open(collection) as opened:
        assert opened.count() == 5


def _remove() -> None:
    """What the button of the dialog does, which AppTest cannot press."""
    from lmk_rag.upkeep import remove
    from ui.components.session import attempt, searcher

    with attempt():
        remove(searcher().collection, [1])


def test_everything_is_embedded_anew_only_when_that_is_confirmed(open_page: Open) -> None:
    app = open_page("library", tab="Collection")
    app.button(key="embed-anew").click().run()
    assert not app.exception
    assert jobs().current is None
    assert "5 documents will be read by the model default, 3 times, for " in shown_html(app)
    assert app.button(key="confirm-anew")  # in a dialog, as above
    AppTest.from_function(_anew, default_timeout=120).run()
    job = jobs().current
    assert job is not None
    assert job.wait(300)
    assert job.error is None
    app.run()
    assert "Embedding everything anew: done. 0 documents embedded." in shown_html(app)  # by the model that made them


def _anew() -> None:
    from ui.components.running import begin_anew

    begin_anew()


def test_a_pooling_more_moves_within_its_batch(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.components.running._CHARACTERS_A_POSITION", 1.0)  # as the tiny vocabulary has
    job = Watched()
    with Collection.open(collection) as opened:
        assert add_pooling(opened, "max", "cpu", Relay(job)) == 5
    assert len(job.shares) > 0
    assert 0 < job.shares[0] <= 1


def test_a_job_that_is_cancelled_at_once_does_not_say_that_there_was_nothing_to_do(open_page: Open) -> None:
    def work(job: Job[object]) -> Report:
        job.start(5, 500)
        job.cancel()
        return Report()

    ended(work)
    shown = shown_html(open_page("library"))
    assert "cancelled, 5 documents left. Nothing yet, in 0 s." in shown
