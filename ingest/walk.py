"""Which files there are, and how to tell whether one has changed."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ingest.readers import no_reader, supported, unreadable

_BLOCK = 1 << 20
_HIDDEN = (".", "~$")  # Office keeps ~$report.docx beside a report that is open


@dataclass(frozen=True, slots=True)
class Problem:
    """A path that was named but cannot be ingested, and why."""

    path: Path
    reason: str


def walk(
    paths: Iterable[Path | str],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    problems: list[Problem] | None = None,
) -> Iterator[Path]:
    """Give the files to ingest: absolute paths, each once, sorted inside each folder.

    Folders are walked to the bottom; hidden files and folders and files without a reader are passed over, a
    folder reached twice by links is walked once. A file that is named itself is given even when hidden.

    Args:
        paths: Files and folders, ``~`` allowed.
        include: Globs; where there are any, a file in a folder must match one. Matched against the file's name
            and its path relative to the walked folder; ``**`` stands for any number of folders.
        exclude: Globs of files and folders to pass over, matched in the same way; stronger than `include`.
        problems: Takes what was named but is missing, unreadable or has no reader.
    """
    problems = problems if problems is not None else []
    given: set[Path] = set()
    for path in map(absolute, paths):
        try:
            is_folder = path.is_dir()
        except OSError as error:  # a name that is too long, or below a folder that may not be read
            problems.append(Problem(path, unreadable(error)))
            continue
        if is_folder:
            found: Iterable[Path] = _files(path, path, tuple(include), tuple(exclude), set(), problems)
        else:
            found = _named(path, problems)
        for file in found:
            if file not in given:
                given.add(file)
                yield file


def absolute(path: Path | str) -> Path:
    """Give the path as the collection knows it: absolute, ``~`` and ``..`` resolved, links kept."""
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100 - resolve() would follow links


def fingerprint(path: Path) -> tuple[int, int]:
    """Give size in bytes and time of change in ns: both the same means unchanged."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def is_gone(path: Path) -> bool:
    """Tell whether a file is no more; one that cannot be reached may still be there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def sha256(path: Path) -> str:
    """Give the SHA-256 of the file's bytes in hexadecimal, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _named(path: Path, problems: list[Problem]) -> list[Path]:
    if not path.exists():
        problems.append(Problem(path, "no such file or folder"))
    elif not path.is_file():
        problems.append(Problem(path, "not a regular file"))
    elif not supported(path):
        problems.append(Problem(path, no_reader(path)))
    else:
        return [path]
    return []


def _files(
    folder: Path,
    root: Path,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    seen: set[tuple[int, int]],
    problems: list[Problem],
) -> Iterator[Path]:
    try:
        stat = folder.stat()
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Problem(folder, unreadable(error)))
        return
    if (stat.st_dev, stat.st_ino) in seen:
        return
    seen.add((stat.st_dev, stat.st_ino))
    for entry in entries:
        path = Path(entry.path)
        relative = path.relative_to(root).as_posix()
        if entry.name.startswith(_HIDDEN) or _matches(relative, exclude):
            continue
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError as error:  # a link to itself, or into a folder that may not be read
            problems.append(Problem(path, unreadable(error)))
            continue
        if is_folder:
            yield from _files(path, root, include, exclude, seen, problems)
        elif is_file and supported(path) and (not include or _matches(relative, include)):
            yield path


def _matches(relative: str, globs: tuple[str, ...]) -> bool:
    name = relative.rpartition("/")[2]
    return any(_pattern(glob).fullmatch(relative) or _pattern(glob).fullmatch(name) for glob in globs)


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    """Turn a glob into a pattern: ``*`` and ``?`` stay inside one folder, ``**/`` crosses any number of them."""
    out = []
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", glob.strip().removeprefix("./").rstrip("/"), re.DOTALL):
        match part:
            case "**/":
                out.append("(?:.*/)?")
            case "**":
                out.append(".*")
            case "*":
                out.append("[^/]*")
            case "?":
                out.append("[^/]")
            case _ if len(part) > 1:
                out.append(_class(part))
            case _:
                out.append(re.escape(part))
    return re.compile("".join(out), re.DOTALL)


def _class(part: str) -> str:
    """Write ``[abc]`` or ``[!abc]`` as a pattern; one that is none, such as ``[z-a]``, stands for itself."""
    inner = part[1:-1].replace("\\", "\\\\")
    written = f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner.replace('^', chr(92) + '^')}]"
    try:
        re.compile(written)
    except re.error:
        return re.escape(part)
    return written
