"""Long work in a thread: progress, an end on request, its outcome and its error, one at a time."""

import threading
from types import SimpleNamespace

import pytest

from lmk_rag.jobs import BusyError, Job, Jobs

SECONDS = 30.0


def test_progress_and_outcome() -> None:
    told, go_on = threading.Event(), threading.Event()

    def work(job: Job[object]) -> str:
        job.start(4, 200)
        job.message("Loading …")
        job.tokens(128)
        job.finished(1, 50)
        told.set()
        assert go_on.wait(SECONDS)
        return "done"

    job = Jobs().begin("Indexing", work)
    assert told.wait(SECONDS)
    state = job.state()
    assert job.running
    assert (state.files, state.all_files, state.positions, state.messages) == (1, 4, 128, ("Loading …",))
    assert state.share == 0.25
    go_on.set()
    assert job.wait(SECONDS)
    assert job.outcome == "done"
    assert job.error is None
    assert job.state().seconds == job.state().seconds


def test_what_comes_before_the_first_text_does_not_slow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 20.0, 30.0])  # made, begun, the model is loaded, the end
    monkeypatch.setattr("lmk_rag.jobs.time", SimpleNamespace(monotonic=lambda: next(clock)))

    def work(job: Job[object]) -> None:
        job.embedding(50, 500)
        job.tokens(1000)
        job.embedding(50, 500)

    job = Job("Indexing", work)
    job.begin()
    job._thread.join(SECONDS)
    assert job.state().seconds == 30
    assert job.state().positions_a_second == 100  # in the ten seconds after the model was there


def test_cancel_is_a_request() -> None:
    job = Jobs().begin("Indexing", lambda job: job.stop.wait(SECONDS))
    before = job.cancelled
    job.cancel()
    assert job.wait(SECONDS)
    assert (before, job.cancelled) == (False, True)
    assert job.outcome is True


def test_an_error_is_kept() -> None:
    def work(job: Job[object]) -> object:
        raise ValueError("The model is missing.")

    job = Jobs().begin("Indexing", work)
    assert job.wait(SECONDS)
    assert str(job.error) == "The model is missing."
    assert job.outcome is None


def test_one_job_at_a_time() -> None:
    jobs, go_on = Jobs(), threading.Event()
    first = jobs.begin("Indexing papers", lambda job: go_on.wait(SECONDS))
    with pytest.raises(BusyError, match="Indexing papers is still running"):
        jobs.begin("Indexing more", lambda job: None)
    go_on.set()
    assert first.wait(SECONDS)
    second = jobs.begin("Indexing more", lambda job: 7)
    assert second.wait(SECONDS)
    assert jobs.current is second


def test_the_share_moves_within_a_batch_and_never_back() -> None:
    job: Job[object] = Job("x", lambda job: None)
    job.start(10, 1000)
    job.finished(1, 200)
    job.embedding(400, 50)
    shares = [job.state().share]
    for _ in range(3):
        job.tokens(20)
        shares.append(job.state().share)
    job.finished(4, 400)
    shares.append(job.state().share)
    assert shares == pytest.approx([0.2, 0.36, 0.52, 0.6, 0.6])  # 20 of 50 positions of 400 of 1000 bytes, and so on
    job.embedding(400, 50)
    job.tokens(25)
    assert job.state().share == pytest.approx(0.8)


def test_jobs_have_numbers_and_one_that_is_put_away_takes_no_other_with_it() -> None:
    jobs = Jobs()
    first = jobs.begin("one", lambda job: 1)
    assert first.wait(SECONDS)
    second = jobs.begin("two", lambda job: 2)
    jobs.put_away(first)
    assert jobs.current is second
    assert second.number > first.number
    assert second.wait(SECONDS)
    jobs.put_away(second)
    assert jobs.current is None


def test_a_share_without_bytes_counts_files() -> None:
    job: Job[object] = Job("x", lambda job: None)
    assert job.state().share == 0
    job.start(4, 0)
    job.finished(3, 0)
    assert job.state().share == 0.75
    job.finished(3, 0)
    assert job.state().share == 1
