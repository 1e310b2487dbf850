"""Paths in, parsed files out: in worker processes, with a bounded look-ahead."""

import contextlib
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from ingest.assembly import Assembly, Parsed
from ingest.pool import Limits, Pool
from ingest.worker import steps

__all__ = ["Parsed", "parse_file", "parse_files"]

MEMORY_BYTES = 2 << 30


def parse_file(path: Path) -> Parsed:
    """Parse one file in this process, without limits of time or memory."""
    assembly = Assembly(path)
    for step in steps(path):
        assembly.add(step)
    return assembly.finish()


def parse_files(
    paths: Iterable[Path],
    *,
    workers: int,
    page_seconds: float = 30.0,
    memory_bytes: int = MEMORY_BYTES,
    ahead: int = 8,
) -> Generator[Parsed, None, None]:
    """Parse files beside the caller's own work.

    Args:
        paths: The files; taken one by one, in the caller's thread, as results are asked for.
        workers: Parser processes; 0 parses in this process, without limits of time or memory.
        page_seconds: A page that takes longer is left out and its worker replaced. Opening a file, or reading
            one that has no pages, may take ten times as long.
        memory_bytes: Address space of a worker, where the platform can limit it.
        ahead: Most files that are taken from `paths` and not yet given back, so that memory stays flat.

    Yields:
        One result for each path, as they are done: not in the order of `paths`. Closing the iterator ends the workers.

    Raises:
        ChildProcessError: The worker processes cannot be started.
    """
    if workers == 0:
        yield from map(parse_file, paths)
        return
    with contextlib.closing(Pool(workers, Limits(page_seconds, memory_bytes))) as pool:
        yield from _ahead(pool, iter(paths), max(ahead, 1))


def _ahead(pool: Pool, paths: Iterator[Path], ahead: int) -> Iterator[Parsed]:
    pending = 0
    more = True
    while more or pending:
        while more and pending < ahead:
            path = next(paths, None)
            more = path is not None
            if path is not None:
                pool.submit(path)
                pending += 1
        if pending:
            yield pool.result()
            pending -= 1
