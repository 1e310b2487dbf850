"""Says in one sentence what this machine's Python lacks for lmk-rag, or nothing at all.

Kept to syntax that Python 3.6 reads, so that an old Python gets the sentence and not a traceback.
"""

import importlib.util
import sqlite3
import sys

OLDEST = (3, 11)


def python_problem() -> str:
    """A Python that is too old, or an empty string."""
    found = tuple(sys.version_info[:2])
    if found >= OLDEST:
        return ""
    return (
        "lmk-rag needs Python {}.{} or newer, and {} is {}.{}: install one and name it, "
        "for example `make setup PYTHON=python3.12`."
    ).format(*OLDEST, sys.executable, *found)


def venv_problem() -> str:
    """A Python that cannot make a virtual environment with pip in it, or an empty string."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return (
        "{} lacks the module {}, so it cannot make a virtual environment: "
        "install it (on Debian and Ubuntu: apt install python3-venv)."
    ).format(sys.executable, missing[0])


def sqlite_problem() -> str:
    """An SQLite without the full-text extension FTS5, or an empty string."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.OperationalError:
        return (
            "SQLite {} of {} was built without FTS5, which lmk-rag needs for full-text search: "
            "use a Python whose SQLite has it (those of python.org, Debian, Homebrew and conda do)."
        ).format(sqlite3.sqlite_version, sys.executable)
    finally:
        connection.close()
    return ""


def main() -> int:
    """Prints the first problem and returns 1, or returns 0."""
    problem = python_problem() or venv_problem() or sqlite_problem()
    if problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
