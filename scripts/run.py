"""`make run`: index the sample documents, or the folder in DOCS, and open the page on them."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from scripts.make_samples import write_samples

ROOT = Path(__file__).resolve().parents[1]
COLLECTIONS = ROOT / "collections"
COMMAND = str(Path(sys.executable).parent / "lmk-rag")
SOME_FILES_FAILED = 1


def collection_for(folder: Path) -> Path:
    """A collection of its own for each folder: a readable name, and a hash since two folders may share a name."""
    slug = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-") or "documents"
    return COLLECTIONS / f"{slug}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"


def documents_and_collection(docs: str) -> tuple[Path, Path]:
    """The folder to index and the collection that it goes into; the samples where `docs` is empty.

    Raises:
        SystemExit: `docs` names nothing that exists.
    """
    if not docs.strip():
        samples = ROOT / "build" / "samples"
        print("run: writing the sample documents, the reference of Python's standard library", flush=True)
        write_samples(samples)
        return samples, COLLECTIONS / "samples"
    # Some shells hand over `~` as it is in DOCS=~/papers.
    folder = Path(docs).expanduser().absolute()
    if not folder.exists():
        raise SystemExit(f"run: there is no {folder}; name an existing folder, as in `make run DOCS=~/papers`.")
    return folder, collection_for(folder.resolve())


def lmk_rag(*arguments: str) -> tuple[int, bool]:
    """Runs an lmk-rag command; returns its exit status and whether Ctrl-C was pressed meanwhile.

    Ctrl-C reaches the command too, which ends in its own way (ingest finishes its batch), so it is waited for.
    """
    interrupted = False

    def note(_number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        status = subprocess.run([COMMAND, *arguments], check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
    return status, interrupted


def main() -> int:
    """Indexes, then serves the page until it is stopped; returns the exit status."""
    # The base model comes with the packages, so nothing here asks the model hub.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    folder, collection = documents_and_collection(os.environ.get("DOCS", ""))

    print(f"run: indexing {folder} into {collection}", flush=True)
    status, interrupted = lmk_rag("ingest", str(folder), "--collection", str(collection))
    if interrupted or status not in {0, SOME_FILES_FAILED}:
        return status

    print("run: opening the page (Ctrl-C stops it)", flush=True)
    arguments = ["ui", "--collection", str(collection)]
    if os.name != "nt":
        os.execv(COMMAND, [str(COMMAND), *arguments])  # so that whoever ends this process ends the page
    return lmk_rag(*arguments)[0]


if __name__ == "__main__":
    sys.exit(main())
