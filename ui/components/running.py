"""The job that runs: how far it is, what it says, a button that cancels it, and what came of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from indexes.collection import Collection
from ingest.pipeline import Options, Progress, Report, ingest
from lmk_rag.indexing import Settings
from lmk_rag.jobs import Job
from lmk_rag.upkeep import add_pooling, embed_anew
from ui.components.markup import count, tag, text
from ui.components.session import attempt, choices, complain, has_collection, jobs

_EVERY = 1.0
_LISTED = 20


class _Told(Progress):
    """Passes on to a job what happens during an ingest."""

    def __init__(self, job: Job[object]) -> None:
        self._job = job

    def start(self, files: int, size: int) -> None:
        self._job.start(files, size)

    def message(self, text: str) -> None:
        self._job.message(text)

    def tokens(self, count: int) -> None:
        if not self._job.state().positions:
            self._job.message("Embedding …")
        self._job.tokens(count)

    def finished(self, files: int, size: int) -> None:
        self._job.finished(files, size)


def begin_ingest(paths: Sequence[Path], poolings: Sequence[str] = (), *, retry_failed: bool = False) -> None:
    """Start to bring the collection up to date with files and folders."""
    chosen = choices()
    new = not has_collection()
    if new:
        with attempt():  # now, since the page cannot open a collection that the job is just making
            Collection.open(chosen.collection, create=True).close()
    settings = Settings(model=chosen.model if new and chosen.model != "default" else None, device=chosen.device)
    options = Options(poolings=tuple(poolings), settings=settings, retry_failed=retry_failed)
    _begin(
        f"Indexing {count(len(paths), 'file')}" if len(paths) != 1 else f"Indexing {paths[0].name}",
        lambda job: ingest(paths, chosen.collection, options, _Told(job), job.stop),
    )


def begin_pooling(pooling: str) -> None:
    """Start to embed every document of the collection by one pooling more."""
    chosen = choices()

    def work(job: Job[object]) -> int:
        with Collection.open(chosen.collection) as opened:
            missing = [opened.get(each) for each in _missing(opened, pooling)]
        job.start(len(missing), 0)
        return add_pooling(chosen.collection, pooling, chosen.device, job.tokens, job.stop)

    _begin(f"Indexing by {pooling}", work)


def begin_anew() -> None:
    """Start to embed every document anew by the model that is chosen in Settings."""
    chosen = choices()
    settings = Settings(model=chosen.model, device=chosen.device)

    def work(job: Job[object]) -> int:
        return embed_anew(chosen.collection, settings, job.tokens, job.stop)

    _begin("Embedding everything anew", work)


def _missing(opened: Collection, pooling: str) -> list[int]:
    record = opened.encoder(pooling)
    return opened.missing(record.id) if record else [each.id for each in opened.documents()]


def _begin(title: str, work: Callable[[Job[object]], object]) -> None:
    with attempt():
        jobs().begin(title, work)


def show_job() -> None:
    """Show the job that runs, or what came of the last one until it is put away."""
    job = jobs().current
    if job is None:
        return
    if job.running:
        st.fragment(_show_running, run_every=_EVERY)()
    else:
        _show_ended(job)


def _show_running() -> None:
    job = jobs().current
    if job is None or not job.running:
        st.rerun()  # the whole page: there is more to see now
    state = job.state()
    with st.container(border=True, key="job"):
        with st.container(horizontal=True, vertical_alignment="center", wrap=False):
            st.html(tag("div", text(f"{job.title} …"), "lr-title"))
            st.button(
                "Stopping …" if job.cancelled else "Cancel",
                key="cancel",
                icon=":material/stop_circle:",
                disabled=job.cancelled,
                on_click=job.cancel,
                help="What is done until then is kept; the same again goes on from there.",
            )
        st.progress(state.share)
        parts = [f"{state.files:,} of {count(state.all_files, 'file')}"] if state.all_files else []
        if state.positions:
            parts.append(
                f"{count(state.positions, 'token')} embedded, {state.positions / max(state.seconds, 1):,.0f} a second"
            )
        parts.append(f"{state.seconds:.0f} s")
        st.html(tag("div", text(" · ".join(parts)), "lr-meta"))
        if state.messages:
            st.html(tag("div", text(state.messages[-1]), "lr-note"))


def _show_ended(job: Job[object]) -> None:
    with st.container(border=True, key="job-ended"):
        with st.container(horizontal=True, vertical_alignment="center", wrap=False):
            stopped = " was cancelled" if job.cancelled else ""
            st.html(tag("div", text(f"{job.title}{stopped or ': done' if job.error is None else ''}"), "lr-title"))
            if st.button("Close", key="put-away", icon=":material/close:", type="tertiary"):
                jobs().current = None
                st.rerun()
        if job.error is not None:
            complain(job.error)
        elif isinstance(job.outcome, Report):
            _show_report(job.outcome)
        elif isinstance(job.outcome, int):
            st.html(tag("div", text(f"{count(job.outcome, 'document')} embedded."), "lr-note"))


def _show_report(report: Report) -> None:
    counts = {
        "new": report.indexed,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "failed": len(report.failed),
    }
    told = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number) or "nothing to do"
    st.html(tag("div", text(f"{told}, in {report.seconds:.0f} s."), "lr-note"))
    listed = [*report.failed, *report.warnings]
    if listed:
        with st.expander(f"{count(len(report.failed), 'failure')}, {count(len(report.warnings), 'warning')}"):
            for path, reason in listed[:_LISTED]:
                st.html(tag("div", text(reason), "lr-note") + tag("div", text(path), "lr-path"))
            if len(listed) > _LISTED:
                st.caption(f"and {len(listed) - _LISTED} more, in the list below")
