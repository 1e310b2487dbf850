"""The job that runs: how far it is, what it says, a button that cancels it, and what came of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from indexes.collection import Collection
from ingest.pipeline import Options, Progress, Report
from lmk_rag import job_process
from lmk_rag.indexing import Settings
from lmk_rag.jobs import BusyError, Job, State
from lmk_rag.upkeep import Anew
from lmk_rag.wording import count
from ui.components.markup import tag, text
from ui.components.session import attempt, choices, complain, has_collection, jobs

_EVERY = 1.0
_LISTED = 20
_TOLD_FOR = 30.0
"""Seconds for which a page that is shown says that a job has ended well."""
_LOADING, _READING = "Loading the model …", "Reading files …"
_CHARACTERS_A_POSITION = 3.0
"""As long as nothing has been embedded: technical English in a vocabulary of word pieces."""
_REFUSED = "job-refused"
"""Where a window keeps why its job was not begun, until the run of its script that shows it."""


class Relay(Progress):
    """Passes on to a job what happens during an ingest."""

    def __init__(self, job: Job[object], poolings: int = 1, between: str = "") -> None:
        """Take the job, how many poolings read each text, and what to say between two batches."""
        self._job = job
        self._between = between
        self._first_guess = _CHARACTERS_A_POSITION / max(poolings, 1)
        self._characters = 0
        self._batch = 0

    def start(self, files: int, size: int) -> None:
        """Pass on what there is to do."""
        self._job.start(files, size)

    def message(self, text: str) -> None:
        """Pass on a sentence."""
        self._job.message(text)

    def embedding(self, size: int, characters: int) -> None:
        """Tell the job what is embedded next, and how many positions that will be by what the text so far took."""
        self._say_embedding()
        read = self._job.state().positions
        a_position = self._characters / read if read else self._first_guess
        self._batch = characters
        self._job.embedding(size, round(characters / a_position))

    def tokens(self, count: int) -> None:
        """Pass on what was embedded."""
        self._say_embedding()
        self._job.tokens(count)

    def finished(self, files: int, size: int) -> None:
        """Pass on what is done, and say what comes next."""
        self._characters += self._batch
        self._batch = 0
        self._job.finished(files, size)
        state = self._job.state()
        if state.files >= state.all_files:
            self._job.message("Finishing …")
        elif self._between:
            self._job.message(self._between)

    def _say_embedding(self) -> None:
        """Say it in place of what went before; an ingest may have said in words of its own what it embeds."""
        if not "".join(self._job.state().messages[-1:]).startswith("Embedding"):
            self._job.message("Embedding …")


def begin_ingest(paths: Sequence[Path], poolings: Sequence[str] = (), *, retry_failed: bool = False) -> None:
    """Start to bring the collection up to date with files and folders."""
    chosen = choices()
    if not has_collection():
        with attempt():  # now, since the page cannot open a collection that the job is just making
            Collection.open(chosen.collection, create=True).close()

    def work(job: Job[object]) -> Report | None:
        job.message("Looking for what is new …")
        with Collection.open(chosen.collection) as opened:
            read_by = len(opened.encoders())
        model = None if read_by or chosen.model == "default" else chosen.model  # vectors keep the model that made them
        settings = Settings(model=model, device=chosen.device)
        options = Options(poolings=tuple(poolings), settings=settings, retry_failed=retry_failed)
        return job_process.ingest(paths, chosen.collection, options, Relay(job, read_by, _READING), job.stop)

    _begin(f"Indexing {count(len(paths), 'file')}" if len(paths) != 1 else f"Indexing {paths[0].name}", work)


def begin_pooling(pooling: str) -> None:
    """Start to embed every document of the collection by one pooling more."""
    chosen = choices()

    def work(job: Job[object]) -> int | None:
        job.message(_LOADING)
        return job_process.add_pooling(chosen.collection, pooling, chosen.device, Relay(job), job.stop)

    _begin(f"Indexing by {pooling}", work)


def begin_anew() -> None:
    """Start to embed every document anew by the model that is chosen in Settings."""
    chosen = choices()
    settings = Settings(model=chosen.model, device=chosen.device)

    def work(job: Job[object]) -> Anew | None:
        job.message(_LOADING)
        return job_process.embed_anew(chosen.collection, settings, Relay(job), job.stop)

    _begin("Embedding everything anew", work)


def _begin(title: str, work: Callable[[Job[object]], object]) -> None:
    """Begin a job; why it cannot be begun is shown where the job that runs is, also when the page is run anew now."""
    try:
        jobs().begin(title, work)
    except BusyError as error:
        st.session_state[_REFUSED] = error


def show_job() -> None:
    """Show the job that runs; of the last one that it has ended, and what went wrong until that is put away."""
    refused = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        complain(refused)
    job = jobs().current
    if job is None:
        return
    if job.running:
        st.fragment(_show_running, run_every=_EVERY)(job)
    elif job.error is not None or (isinstance(job.outcome, Report) and job.outcome.failed):
        _show_failed(job)
    elif job.ended_since() < _TOLD_FOR:
        st.html(tag("div", "✓ " + text(_outcome(job)), "lr-note lr-done"))


def _show_running(job: Job[object]) -> None:
    if not job.running:
        st.rerun()  # the whole page: there is more to see now
    state = job.state()
    with st.container(border=True, key=f"job-{job.number}"):
        with st.container(horizontal=True, vertical_alignment="center", wrap=False):
            st.html(tag("div", text(f"{job.title} …"), "lr-title"))
            st.button(
                "Stopping …" if job.cancelled else "Cancel",
                key=f"cancel-{job.number}",
                icon=":material/stop_circle:",
                disabled=job.cancelled,
                on_click=job.cancel,
                help="What is done until then is kept; the same again goes on from there.",
            )
        st.progress(state.share)
        st.html(tag("div", text(_how_far(state)), "lr-meta"))
        if state.messages:
            st.html(tag("div", text(state.messages[-1]), "lr-note"))


def _how_far(state: State) -> str:
    parts = [f"{state.files:,} of {count(state.all_files, 'document')}"] if state.all_files else []
    if state.positions:
        parts.append(f"{count(state.positions, 'token')} embedded, {state.positions_a_second:,.0f} a second")
    return " · ".join([*parts, f"{state.seconds:.0f} s"])


def _outcome(job: Job[object]) -> str:
    """Say in one line what came of a job."""
    state, outcome = job.state(), job.outcome
    left = state.all_files - state.files
    ended = f"{job.title}: done"
    if job.cancelled:
        ended = f"{job.title}: cancelled" + (f", {count(left, 'document')} left" if left > 0 else "")
    if isinstance(outcome, Report):
        return f"{ended}. {_counted(outcome, 'nothing yet' if job.cancelled else 'nothing to do')}"
    if outcome is None:  # ended in the middle of a batch
        return f"{ended}." + (f" {count(state.files, 'document')} done." if state.files else "")
    made = sum(outcome.embedded.values()) if isinstance(outcome, Anew) else outcome
    return f"{ended}. {count(made, 'document')} embedded." if isinstance(made, int) else f"{ended}."


def _counted(report: Report, nothing: str) -> str:
    counts = {
        "new": report.indexed,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "failed": len(report.failed),
        "with remarks": len({path for path, _ in report.warnings}),
    }
    told = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number) or nothing
    return f"{told[0].upper()}{told[1:]}, in {report.seconds:.0f} s."


def _show_failed(job: Job[object]) -> None:
    with st.container(border=True, key=f"failed-{job.number}"):
        with st.container(horizontal=True, vertical_alignment="center", wrap=False):
            st.html(tag("div", text(job.title if job.error is not None else _outcome(job)), "lr-note"))
            if st.button("Close", key=f"put-away-{job.number}", icon=":material/close:", type="tertiary"):
                jobs().put_away(job)
                st.rerun()
        if job.error is not None:
            complain(job.error)
        elif isinstance(job.outcome, Report):
            _show_failures(job.outcome.failed)


def _show_failures(failed: Sequence[tuple[str, str]]) -> None:
    with st.expander(f"Why {count(len(failed), 'file')} could not be read"):
        for path, reason in failed[:_LISTED]:
            st.html(tag("div", text(reason), "lr-note") + tag("div", text(path), "lr-path"))
        if len(failed) > _LISTED:
            st.caption(f"and {len(failed) - _LISTED} more, in the list below")
