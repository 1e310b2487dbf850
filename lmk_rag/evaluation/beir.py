"""Data sets in BEIR's format: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/SPLIT.tsv``; gzip allowed."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("passkey", "needle", "rfc", "python-docs", "python-sections", "linux-docs")
"""Data sets known by name; any other is a folder."""
_SCRIPTS = {"rfc": "build_rfc.py"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Documents, queries and which document answers which query.

    Attributes:
        name: for the report.
        corpus: text of each document by id, its title in front where it has one.
        queries: text of each query by id.
        qrels: for each query that is judged, the documents' grades, above 0 meaning relevant.
        kinds: what sort of query each is ("title", "heading" ...), where the data set says.
    """

    name: str
    corpus: Mapping[str, str]
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    kinds: Mapping[str, str] = field(default_factory=dict)

    def limited(self, documents: int) -> Dataset:
        """A fixed draw of that many documents, and the queries that one of them answers.

        Raises:
            ValueError: they answer none.
        """
        if documents >= len(self.corpus):
            return self
        drawn = set(random.Random(documents).sample(sorted(self.corpus), documents))
        qrels = {
            query: {key: grade for key, grade in grades.items() if key in drawn} for query, grades in self.qrels.items()
        }
        qrels = {query: grades for query, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
        if not qrels:
            raise ValueError(
                f"No query of {self.name} is answered by one of {documents} documents drawn from {len(self.corpus)}: "
                "take a larger limit."
            )
        return Dataset(
            name=self.name,
            corpus={key: text for key, text in self.corpus.items() if key in drawn},
            queries={key: self.queries[key] for key in qrels},
            qrels=qrels,
            kinds={key: kind for key, kind in self.kinds.items() if key in qrels},
        )


def dataset_folder() -> Path:
    """Where data sets known by name lie: ``LMK_RAG_DATASETS``, else a folder in the user's cache."""
    return Path(os.environ.get("LMK_RAG_DATASETS") or "~/.cache/lmk-rag/datasets").expanduser()


def find(name: str, split: str = "test", *, full: bool = False) -> Path:
    """The folder of a data set that is given by name or as a folder.

    Raises:
        FileNotFoundError: there is none; the message says how to build it.
    """
    if name not in NAMES:
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise FileNotFoundError(f"There is no data set {name!r}: give a folder or one of {', '.join(NAMES)}.")
        return folder
    folder = dataset_folder() / name
    if name == "rfc":
        folder = folder / (f"{split}-full" if full else split)
    elif full:
        folder = folder.with_name(f"{name}-full")
    if not folder.is_dir():
        script = _SCRIPTS.get(name, "build_manuals.py")
        raise FileNotFoundError(
            f"The data set {name!r} is not built ({folder}): run scripts/{script} on the unpacked Debian packages."
        )
    return folder


def load(folder: Path, split: str = "test", name: str | None = None) -> Dataset:
    """Read a data set.

    Args:
        folder: holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/``, each plain or with ``.gz`` appended.
        split: the file in ``qrels/``.
        name: for the report; the folder's name by default.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a line cannot be read, or no query of the split has a document of the corpus.
    """
    corpus = {
        key: "\n\n".join(text for part in ("title", "text") if (text := _text(row.get(part))))
        for key, row in _rows(_existing(folder / "corpus.jsonl")).items()
    }
    rows = _rows(_existing(folder / "queries.jsonl"))
    qrels = _qrels(_split_file(folder / "qrels", split), corpus)
    qrels = {query: grades for query, grades in qrels.items() if query in rows}
    if not qrels:
        raise ValueError(f"{folder} has no judged query for the split {split!r}: check qrels/{split}.tsv.")
    return Dataset(
        name=name or folder.name,
        corpus=corpus,
        queries={key: _text(rows[key].get("text")) for key in qrels},
        qrels=qrels,
        kinds={key: kind for key in qrels if (kind := _kind(rows[key]))},
    )


def save(dataset: Dataset, folder: Path, split: str) -> None:
    """Write a data set, texts with gzip."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as out:
        for key, text in dataset.corpus.items():
            out.write(json.dumps({"_id": key, "title": "", "text": text}, ensure_ascii=False) + "\n")
    with gzip.open(folder / "queries.jsonl.gz", "wt", encoding="utf-8") as out:
        for key, text in dataset.queries.items():
            about = {"kind": dataset.kinds[key]} if key in dataset.kinds else {}
            out.write(json.dumps({"_id": key, "text": text, "metadata": about}, ensure_ascii=False) + "\n")
    with (folder / "qrels" / f"{split}.tsv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, delimiter="\t", lineterminator="\n")
        writer.writerow(["query-id", "corpus-id", "score"])
        for query, grades in dataset.qrels.items():
            writer.writerows([query, key, grade] for key, grade in grades.items())


def _split_file(folder: Path, split: str) -> Path:
    files = sorted(path for path in folder.glob("*.tsv*") if path.name.endswith((".tsv", ".tsv.gz")))
    wanted = [path for path in files if path.name.split(".")[0] == split]
    if wanted:
        return wanted[0]
    there = ", ".join(path.name.split(".")[0] for path in files)
    raise FileNotFoundError(
        f"{folder} has no {split}.tsv: {f'choose a split from {there}' if there else 'a BEIR data set has one'}."
    )


def _qrels(path: Path, corpus: Mapping[str, str]) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        row = line.split("\t")
        try:
            query, key, grade = row[0], row[1], _grade(row[2])
        except (IndexError, ValueError, OverflowError):
            if number == 1 or not line.strip():  # BEIR's first line names the columns
                continue
            raise ValueError(
                f"{path}, line {number}: {line[:80]!r} is not query, document and a whole number between tabs."
            ) from None
        if key in corpus:
            qrels.setdefault(query, {})[key] = grade
    return {query: grades for query, grades in qrels.items() if any(grade > 0 for grade in grades.values())}


def _grade(written: str) -> int:
    """A grade as a whole number that 32 bits hold; BEIR's tools write 1 and 1.0."""
    grade = float(written)
    if not grade.is_integer() or abs(grade) >= 2**31:
        raise ValueError
    return int(grade)


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    """The objects of a file by their ``_id``."""
    rows: dict[str, dict[str, Any]] = {}
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: no JSON ({error}).") from None
        if not isinstance(row, dict) or row.get("_id") is None:
            raise ValueError(f'{path}, line {number}: {line[:80]!r} is not an object with an "_id".')
        key = str(row["_id"])
        if key in rows:
            raise ValueError(f"{path}, line {number}: the _id {key!r} is there already: ids have to be unique.")
        rows[key] = row
    return rows


def _text(value: object) -> str:
    """A field as text that can be encoded; lone surrogates, which JSON can hold, are replaced."""
    return "" if value is None else re.sub("[\ud800-\udfff]", "\ufffd", str(value))


def _kind(row: Mapping[str, Any]) -> str | None:
    about = row.get("metadata")
    kind = about.get("kind") if isinstance(about, dict) else None
    return _text(kind) if isinstance(kind, str) else None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, packed or not, numbered from 1, without their ends."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
            for number, line in enumerate(raw, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}).") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file ({error}).") from None


def _existing(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    if path.exists() or packed.exists():
        return path if path.exists() else packed
    raise FileNotFoundError(f"{path} is missing: a BEIR data set has corpus.jsonl, queries.jsonl and qrels/.")
