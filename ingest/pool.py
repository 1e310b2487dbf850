"""Parser processes: each file is read in one of them, so that no file can stop, crash or fill this process."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ingest.assembly import Assembly, Parsed
from ingest.readers import format_of
from ingest.worker import OUT_OF_MEMORY

# Opening a file, or reading one without pages, may take this many times a page's limit.
OPENING_PAGES = 10
# A file that keeps crashing or freezing is not followed to its end.
MOST_LOST_PAGES = 20
_FILES_A_WORKER = 200
_START_SECONDS = 60.0
_WINDOWS_FLAGS = 0x0200 | 0x08000000  # CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW
WORKER_COMMAND = (sys.executable, "-P", "-m", "ingest.worker")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one page may cost.

    Attributes:
        page_seconds: Time for one page.
        memory_bytes: Address space of a parser process.
    """

    page_seconds: float
    memory_bytes: int

    @property
    def opening_seconds(self) -> float:
        """Time for opening a file, or for reading one that has no pages."""
        return OPENING_PAGES * self.page_seconds


@dataclass(slots=True)
class _Job:
    """A file on its way; `engine` and `single` say how the next page is tried."""

    assembly: Assembly
    engine: int = 0
    single: bool = False

    def task(self) -> dict[str, Any]:
        start = self.assembly.next_page
        stop = start + 1 if self.single else None
        return {"path": str(self.assembly.path), "start": start, "stop": stop, "engine": self.engine}


@dataclass(slots=True, eq=False)
class _Worker:
    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]
    deadline: float
    ready: bool = False
    job: _Job | None = None
    files: int = 0
    killed: bool = False
    reader: threading.Thread | None = field(default=None)


class Pool:
    """Parses files in worker processes, a thread of this process watching over them."""

    def __init__(self, workers: int, limits: Limits) -> None:
        """Start the thread; processes start as files come.

        Args:
            workers: Most processes at a time, at least 1.
            limits: What a page may cost.
        """
        self._most = workers
        self._limits = limits
        self._events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Parsed | BaseException] = queue.SimpleQueue()
        self._waiting: deque[_Job] = deque()
        self._workers: list[_Worker] = []
        self._thread = threading.Thread(target=self._run, name="parser pool", daemon=True)
        self._thread.start()

    def submit(self, path: Path) -> None:
        """Have a file parsed; what comes of it is one later `result`."""
        self._events.put(("job", _Job(Assembly(path))))

    def result(self) -> Parsed:
        """Wait for the next file that is done, in any order.

        Raises:
            ChildProcessError: The parser processes cannot be started.
        """
        while True:
            # A wait with a limit lets Ctrl-C through on every platform.
            with contextlib.suppress(queue.Empty):
                result = self._results.get(timeout=1.0)
                break
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """End all processes and wait until they are gone."""
        self._events.put(("close",))
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._next_event():
                self._stop_overdue()
                self._assign()
        except BaseException as error:
            self._results.put(error)
        finally:
            for worker in list(self._workers):
                self._end(worker)

    def _next_event(self) -> bool:
        """Handle one event; False when the pool is closed."""
        deadlines = [worker.deadline for worker in self._workers if worker.job or not worker.ready]
        wait = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        try:
            event = self._events.get(timeout=wait)
        except queue.Empty:
            return True
        match event:
            case ("close",):
                return False
            case ("job", job):
                self._waiting.append(job)
            case ("step", worker, step, at):
                self._step(worker, step, at)
            case ("end", worker):
                self._ended(worker)
        return True

    def _step(self, worker: _Worker, step: dict[str, Any], at: float) -> None:
        if "ready" in step:
            worker.ready = True
            return
        job = worker.job
        if job is None or worker.killed:
            return
        job.assembly.add(step)
        paged = job.assembly.page_count is not None
        worker.deadline = at + (self._limits.page_seconds if paged else self._limits.opening_seconds)
        if "done" in step or "failed" in step:
            worker.job = None
            worker.files += 1
            if worker.files >= _FILES_A_WORKER:
                self._end(worker)
            self._go_on(job)

    def _go_on(self, job: _Job) -> None:
        """Read the rest of a file after a page that was read alone, or give the file as done."""
        count = job.assembly.page_count
        if job.assembly.failure is None and count is not None and job.assembly.next_page < count:
            job.engine, job.single = 0, False
            self._waiting.appendleft(job)
        else:
            self._results.put(job.assembly.finish())

    def _stop_overdue(self) -> None:
        """Stop workers past their time, once every step that has come is taken."""
        if not self._events.empty():
            return
        now = time.monotonic()
        for worker in [worker for worker in self._workers if worker.deadline <= now]:
            if not worker.ready:
                raise ChildProcessError(f"a parser process did not start within {_START_SECONDS:g} s")
            if worker.job:
                limits = self._limits
                opening = worker.job.assembly.page_count is None
                seconds = limits.opening_seconds if opening else limits.page_seconds
                self._end(worker)
                self._failed(worker.job, f"took over {seconds:g} s")

    def _ended(self, worker: _Worker) -> None:
        """Handle the end of a process that nobody stopped."""
        if worker.killed:
            return
        code = worker.process.wait()
        message = self._end(worker)
        if not worker.ready:
            raise ChildProcessError(
                f"a parser process could not start (exit code {code}): {message or 'it said nothing'}"
            )
        if worker.job:
            memory = f"needs over {self._limits.memory_bytes / (1 << 30):.3g} GiB of memory"
            self._failed(worker.job, memory if code == OUT_OF_MEMORY else "the parser crashed")

    def _failed(self, job: _Job, reason: str) -> None:
        """Try the page (or the opening) that stopped a worker with the next engine, or leave it out."""
        assembly = job.assembly
        known = format_of(assembly.path)
        opened = assembly.page_count is not None
        if job.engine + 1 < (known.engines if known else 1):
            job.engine, job.single = job.engine + 1, opened
            self._waiting.appendleft(job)
            return
        if not opened:
            assembly.failure = reason
        elif assembly.losses + 1 < MOST_LOST_PAGES:
            assembly.lose(reason)
        else:
            assembly.lose_rest(f"{reason}, as {assembly.losses} pages before")
        self._go_on(job)

    def _assign(self) -> None:
        """Give waiting files to idle processes, and start another process where one would help."""
        for worker in self._workers:
            if worker.ready and worker.job is None and self._waiting:
                self._give(worker, self._waiting.popleft())
        starting = sum(not worker.ready for worker in self._workers)
        while len(self._workers) < self._most and starting < len(self._waiting):
            self._workers.append(self._start())
            starting += 1

    def _give(self, worker: _Worker, job: _Job) -> None:
        worker.job = job
        worker.deadline = time.monotonic() + self._limits.opening_seconds
        self._write(worker, job.task())

    def _start(self) -> _Worker:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        process = subprocess.Popen(
            WORKER_COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": search_path()},
            # Ctrl-C in a terminal is for this process, which then ends its workers.
            process_group=None if sys.platform == "win32" else 0,
            creationflags=_WINDOWS_FLAGS if sys.platform == "win32" else 0,
        )
        worker = _Worker(process, errors, deadline=time.monotonic() + _START_SECONDS)
        worker.reader = threading.Thread(target=self._listen, args=(worker,), name="parser pipe", daemon=True)
        worker.reader.start()
        self._write(worker, {"memory_bytes": self._limits.memory_bytes})
        return worker

    def _listen(self, worker: _Worker) -> None:
        """Pass on what a worker says, until it ends; one that says what is no step is ended."""
        assert worker.process.stdout is not None
        try:
            for line in worker.process.stdout:
                self._events.put(("step", worker, json.loads(line), time.monotonic()))
        except ValueError:  # a line cut off by the process's end is none either
            worker.process.kill()
        finally:
            self._events.put(("end", worker))

    @staticmethod
    def _write(worker: _Worker, message: dict[str, Any]) -> None:
        """Send a line; a process that is gone is noticed by its output's end."""
        assert worker.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, OSError):
            worker.process.stdin.write(json.dumps(message).encode() + b"\n")
            worker.process.stdin.flush()

    def _end(self, worker: _Worker) -> str:
        """Stop a process, let go of all that belonged to it and give the end of what it said before it was ready."""
        worker.killed = True
        self._workers.remove(worker)
        worker.process.kill()
        worker.process.wait()
        if worker.reader:
            worker.reader.join()
        for stream in (worker.process.stdin, worker.process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        with worker.errors as errors:
            errors.seek(0)
            return errors.read().decode(errors="replace").strip().rpartition("\n")[2]


def search_path() -> str:
    """Give where a process of ours finds this package and the libraries, as PYTHONPATH: where this one does."""
    before = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    # An entry "" is the folder that this process is in.
    return os.pathsep.join(dict.fromkeys([*before, *(str(Path(entry).absolute()) for entry in sys.path)]))
