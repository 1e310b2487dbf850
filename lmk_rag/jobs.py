"""Long work beside the page that started it: one job at a time, with progress, an end on request, and its outcome."""

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome")
_MESSAGES = 20
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class State:
    """How far a job is.

    Attributes:
        files: that are done.
        all_files: that there are to do; 0 while it is not known.
        size: of what is done; of files their bytes, of any other work whatever `Job.start` was told in.
        all_sizes: of everything.
        positions: of text that were embedded.
        batch: size of what is being embedded now, which is not done before it is committed.
        batch_positions: that it takes, about.
        batch_began: how many positions there were before it.
        messages: what the user should know, the newest last.
        seconds: since the start, until the end.
        seconds_before: the first text was embedded: the model was loaded, files were looked for.
    """

    files: int = 0
    all_files: int = 0
    size: int = 0
    all_sizes: int = 0
    positions: int = 0
    batch: int = 0
    batch_positions: int = 0
    batch_began: int = 0
    messages: tuple[str, ...] = ()
    seconds: float = 0.0
    seconds_before: float = 0.0

    @property
    def positions_a_second(self) -> float:
        """How fast text is embedded."""
        return self.positions / max(self.seconds - self.seconds_before, 1.0)

    @property
    def share(self) -> float:
        """How much is done, 0 to 1: what is committed, and what is embedded of the batch under way, about."""
        if not self.all_sizes:
            return min(self.files / self.all_files, 1.0) if self.all_files else 0.0
        embedded = (self.positions - self.batch_began) / max(self.batch_positions, 1)
        return min((self.size + self.batch * min(embedded, 1.0)) / self.all_sizes, 1.0)


class Job(Generic[Outcome]):
    """A function that runs in a thread of its own and tells how far it is.

    What computes for long should wait in it for a process (see `job_process`): a busy thread slows all pages.

    Attributes:
        title: what it does, for people.
        number: tells it from every other job of the process.
        stop: set when the work is to end early.
        outcome: what the function returned; None before, and where it raised.
        error: what it raised.
    """

    def __init__(self, title: str, work: "Callable[[Job[Outcome]], Outcome]") -> None:
        """Take the work: a function of this job, whose methods it calls to tell how far it is."""
        self.title = title
        self.number = next(_numbers)
        self.stop = threading.Event()
        self.outcome: Outcome | None = None
        self.error: Exception | None = None
        self._work = work
        self._lock = threading.Lock()
        self._state = State()
        self._began = time.monotonic()
        self._ended = 0.0
        # A daemon: a server that is stopped does not wait for it, and each batch that was committed is kept.
        self._thread = threading.Thread(target=self._run, name=title, daemon=True)

    def begin(self) -> None:
        """Start the work."""
        self._began = time.monotonic()
        self._thread.start()

    def cancel(self) -> None:
        """Ask the work to end; what it has committed is kept."""
        self.stop.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end; return whether it has come."""
        self._thread.join(seconds)
        return not self.running

    @property
    def running(self) -> bool:
        """Whether it works still."""
        return self._thread.is_alive()

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to end early."""
        return self.stop.is_set()

    def ended_since(self) -> float:
        """Tell how many seconds ago it ended; 0 as long as it runs."""
        return 0.0 if self.running else time.monotonic() - self._ended

    def state(self) -> State:
        """Tell how far it is."""
        with self._lock:
            state = self._state
        return replace(state, seconds=time.monotonic() - self._began) if self.running else state

    # What the work calls, from its own thread.

    def start(self, files: int, size: int) -> None:
        """Know how many files there are, and their sizes together."""
        self._change(all_files=files, all_sizes=size)

    def embedding(self, size: int, positions: int) -> None:
        """Know what is embedded from now on: its size, and about how many positions it takes."""
        before = self._state.seconds_before or time.monotonic() - self._began
        self._change(batch=size, batch_positions=positions, batch_began=self._state.positions, seconds_before=before)

    def message(self, text: str) -> None:
        """Keep a sentence for the user."""
        self._change(messages=(*self._state.messages, text)[-_MESSAGES:])

    def tokens(self, count: int) -> None:
        """Count positions that were embedded."""
        self._change(positions=self._state.positions + count)

    def finished(self, files: int, size: int) -> None:
        """Count files that are done, and their sizes; what was being embedded is among them."""
        self._change(files=self._state.files + files, size=self._state.size + size, batch=0)

    def _change(self, **values: object) -> None:
        with self._lock:
            self._state = replace(self._state, **values)  # type: ignore[arg-type] # names of its fields

    def _run(self) -> None:
        try:
            self.outcome = self._work(self)
        except Exception as error:  # told on the page, whatever it is
            self.error = error
        finally:
            self._ended = time.monotonic()
            self._change(seconds=self._ended - self._began)


class Jobs:
    """The place of the one job that runs; shared by all windows of the page."""

    def __init__(self) -> None:
        """Begin without a job."""
        self._lock = threading.Lock()
        self.current: Job[object] | None = None

    def begin(self, title: str, work: Callable[[Job[object]], object]) -> Job[object]:
        """Start a job.

        Raises:
            BusyError: another one has not ended.
        """
        with self._lock:
            if self.current is not None and self.current.running:
                raise BusyError(f"{self.current.title} is still running: wait for it to end, or cancel it.")
            self.current = Job(title, work)
            self.current.begin()
            return self.current

    def put_away(self, job: Job[object]) -> None:
        """Forget a job that has ended; one that was begun since stays."""
        with self._lock:
            if self.current is job:
                self.current = None


class BusyError(Exception):
    """A job is running already."""
