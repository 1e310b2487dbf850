"""Files become documents of a collection: walked, parsed beside the encoder, embedded and written batch by batch."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from indexes.collection import DATABASE_FILE, Collection
from indexes.errors import CollectionError
from indexes.faiss_index import load_faiss
from indexes.records import Document, Failure, StoredDocument
from indexes.times import now
from ingest.parsing import Parsed, parse_files
from ingest.readers import unreadable
from ingest.walk import Problem, absolute, fingerprint, is_gone, sha256, walk
from lmk_rag.evidence import EVIDENCE_RATIO
from lmk_rag.indexing import Indexer, Settings, batches, load_encoder, refuse_foreign
from lmk_rag.wording import count

_WORKERS = max(1, min(4, (os.cpu_count() or 2) // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What an ingest is asked to do; the fields are the command's options.

    Attributes:
        poolings: to be indexed; those that the collection has are kept up in any case. None of both means the
            model's own.
        settings: model, granularity, max_tokens and device.
        include: globs that a file in a folder must match.
        exclude: globs of files and folders that are passed over.
        prune: documents are removed whose file, in one of the folders, is gone.
        retry_failed: unchanged files that failed before are parsed again.
        evidence_ratio: bytes of evidence kept for each byte of text, at most, in a collection without documents; None
            for the collection's own, 1.6 at first.
        workers: parser processes; 0 parses in this process.
    """

    poolings: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    prune: bool = False
    retry_failed: bool = False
    evidence_ratio: float | None = None
    workers: int = _WORKERS


@dataclass(slots=True)
class Report:
    """What an ingest did, or would do.

    Attributes:
        indexed: documents that are new.
        updated: documents whose file had changed.
        unchanged: files that were as before.
        removed: documents that were pruned.
        failed: path and reason of each file that could not be read.
        warnings: path and sentence, where a document was indexed with a loss or a doubt.
        documents: in the collection afterwards.
        tokens: content tokens embedded, over all poolings.
        seconds: wall time.
        stopped: whether it ended early, on request.
    """

    indexed: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    documents: int = 0
    tokens: int = 0
    seconds: float = 0.0
    stopped: bool = False


class Progress:
    """Told what happens during an ingest; the base class keeps silent."""

    def start(self, files: int, size: int) -> None:
        """Know how many files have to be read, and their bytes together."""

    def message(self, text: str) -> None:
        """Pass on what the user should know while it goes on."""

    def embedding(self, size: int, characters: int) -> None:
        """Know which batch is embedded next: its files' bytes together, and the code points of their text."""

    def tokens(self, count: int) -> None:
        """Count positions that were embedded."""

    def finished(self, files: int, size: int) -> None:
        """Count files that are done, and their bytes."""


def ingest(
    paths: Sequence[str | Path],
    collection: str | Path,
    options: Options,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Report:
    """Bring a collection up to date with files and folders.

    Each batch is committed, so an ingest that is stopped or killed goes on where it was when it is run again; one
    bad file never stops the rest.

    Args:
        paths: files and folders.
        collection: the collection's folder, made where it is missing.
        options: what to do.
        progress: told what happens.
        stop: when it is set, the batch under way is finished and committed, and the ingest ends.

    Raises:
        CollectionError: where the collection cannot be used, another process writes to it, or its vectors were made
            by another model.
        ModelError: where the model cannot be had.
    """
    return _Ingest(paths, options, progress or Progress(), stop or threading.Event()).run(Path(collection))


def plan(paths: Sequence[str | Path], collection: str | Path, options: Options) -> Report:
    """Tell what :func:`ingest` would do, without reading a file's text or writing anything."""
    run = _Ingest(paths, options, Progress(), threading.Event())
    if not (Path(collection) / DATABASE_FILE).exists():
        run.report.indexed = sum(1 for _ in run.files())
        run.report.failed += [(str(each.path), each.reason) for each in run.problems]
        return run.report
    with Collection.open(collection) as opened:
        for path in run.changed(opened):
            known = opened.find(str(path)) is not None
            run.report.updated += known
            run.report.indexed += not known
        run.report.removed = len(run.gone(opened)) if options.prune else 0
        run.report.documents = opened.count()
    return run.report


class _Ingest:
    """One run: its options, and the report as it grows."""

    def __init__(
        self, paths: Sequence[str | Path], options: Options, progress: Progress, stop: threading.Event
    ) -> None:
        self.paths = paths
        self.options = options
        self.progress = progress
        self.stop = stop
        self.report = Report()
        self.problems: list[Problem] = []
        self.touched: list[tuple[StoredDocument, int, int, str]] = []

    def run(self, folder: Path) -> Report:
        """Do everything, under the writer's lock."""
        started = time.monotonic()
        if not (folder / DATABASE_FILE).exists() and not any(self.files()):
            self.report.failed += [(str(each.path), each.reason) for each in self.problems]
            return self.report  # nothing to make a collection of
        with ExitStack() as stack:
            collection = stack.enter_context(Collection.open(folder, create=True))
            stack.enter_context(collection.write("ingest"))
            refuse_foreign(collection)
            self._set_evidence_ratio(collection)
            changed = list(self.changed(collection))
            self._tidy(collection)
            self._check_settings(collection, nothing_new=not changed)
            if changed or self._wanted(collection) - {record.pooling for record in collection.encoders()}:
                self._embed(collection, changed)
            elif any(collection.missing(record.id) for record in collection.encoders()):
                self._embed(collection, [])
            collection.persist_caches()
            self.report.documents = collection.count()
        self.report.seconds = time.monotonic() - started
        return self.report

    def files(self) -> Iterator[Path]:
        """Walk the paths; what cannot be ingested is added to the problems."""
        return walk(self.paths, self.options.include, self.options.exclude, self.problems)

    def changed(self, collection: Collection) -> Iterator[Path]:
        """Yield the files to be parsed; the others are counted as unchanged or failed."""
        self.problems.clear()
        for path in self.files():
            try:
                known = self._known(collection, path)
            except OSError as error:
                self.problems.append(Problem(path, unreadable(error)))
                continue
            if isinstance(known, Failure):
                self.report.failed.append((str(path), known.reason))
            elif known:
                self.report.unchanged += 1
            else:
                yield path
        self.report.failed += [(str(each.path), each.reason) for each in self.problems]

    def _known(self, collection: Collection, path: Path) -> StoredDocument | Failure | None:
        """Give what is known of a file that has not changed; None where it has to be parsed."""
        size, mtime_ns = fingerprint(path)
        stored, failure = collection.find(str(path)), collection.failure(str(path))
        known = failure or stored
        if failure and self.options.retry_failed:
            return None
        return known if known and self._same(path, known, size, mtime_ns) else None

    def _same(self, path: Path, known: StoredDocument | Failure, size: int, mtime_ns: int) -> bool:
        """Tell whether a file is as it was: by size and time, else by its bytes."""
        if known.sha256 is None:  # it could not even be read, which its size and time say nothing of
            return False
        if (known.size, known.mtime_ns) == (size, mtime_ns):
            return True
        if known.size != size:
            return False
        same = sha256(path) == known.sha256
        if same and isinstance(known, StoredDocument):
            self.touched.append((known, size, mtime_ns, known.sha256))
        return same

    def gone(self, collection: Collection) -> list[StoredDocument]:
        """List the documents whose file is no more, of those named or below a named folder."""
        named = list(map(absolute, self.paths))
        roots = [root for root in named if root.is_dir() or root.parent.is_dir()]
        return [
            document
            for document in collection.documents()
            if document.source == "file"
            and any(Path(document.path).is_relative_to(root) for root in roots)
            and is_gone(Path(document.path))
        ]

    def _tidy(self, collection: Collection) -> None:
        """Write down new time stamps, and remove what is gone where that is asked for."""
        gone = self.gone(collection) if self.options.prune else []
        lost = [each.path for each in collection.failures() if is_gone(Path(each.path))]
        if not (self.touched or gone or lost):
            return
        with collection.transaction() as transaction:
            for stored, size, mtime_ns, digest in self.touched:
                transaction.touch(stored.id, size=size, mtime_ns=mtime_ns, sha256=digest)
            for stored in gone:
                transaction.remove(stored.id)
            for path in lost:
                transaction.forget_failure(path)
        self.report.removed = len(gone)
        pruned = {stored.path for stored in gone}
        self.report.failed = [(path, reason) for path, reason in self.report.failed if path not in pruned]

    def _wanted(self, collection: Collection) -> set[str]:
        return {*self.options.poolings, *(record.pooling for record in collection.encoders())}

    def _check_settings(self, collection: Collection, *, nothing_new: bool) -> None:
        """Refuse settings that differ from the collection's even where no file would need the encoder."""
        settings = self.options.settings
        if nothing_new and (settings.model or settings.granularity or settings.max_tokens is not None):
            for record in collection.encoders():
                load_encoder(collection, record.pooling, settings)

    def _set_evidence_ratio(self, collection: Collection) -> None:
        """Keep to the ratio that is asked for; another one than that of the documents that are there is refused."""
        wanted = self.options.evidence_ratio
        if wanted is None:
            return
        kept = collection.evidence_ratio or EVIDENCE_RATIO
        if wanted != kept and collection.count():
            raise CollectionError(
                f"{collection.path} keeps {kept:g} bytes of evidence a byte of text, and its documents were embedded "
                f"so: leave the evidence ratio out, or make a new collection for {wanted:g}."
            )
        with collection.transaction() as transaction:
            transaction.set_evidence_ratio(wanted)

    def _embed(self, collection: Collection, changed: Sequence[Path]) -> None:
        load_faiss()  # a missing one is told now, not after hours of work
        self.progress.start(len(changed), sum(fingerprint(path)[0] for path in changed if not is_gone(path)))
        indexer = self._indexer(collection)
        self.progress.message("Reading files …")
        with closing(parse_files(self._until_stopped(changed), workers=self.options.workers)) as parsed:
            for batch in batches(parsed, _characters, indexer.batch_characters):
                size = sum(each.size or 0 for each in batch)
                self.progress.embedding(size, sum(map(_characters, batch)))
                self._write(collection, indexer, batch)
                self.progress.finished(len(batch), size)
                if self.stop.is_set():
                    break
        lacking = sum(len(collection.missing(record.id)) for record, _ in indexer.encoders)
        if lacking and not self.stop.is_set():
            self.progress.message(f"Embedding {count(lacking, 'document')} without a vector …")
        indexer.add_missing()
        self.report.tokens = indexer.tokens
        self.report.warnings += [(path, f"{count(cut, 'token')} at its end left unread") for path, cut in indexer.cut]
        self.report.stopped = self.stop.is_set()

    def _until_stopped(self, paths: Sequence[Path]) -> Iterator[Path]:
        for path in paths:
            if self.stop.is_set():
                return
            yield path

    def _indexer(self, collection: Collection) -> Indexer:
        """Load the encoders of the poolings that are wanted."""
        self.progress.message("Loading the model …")
        poolings: list[str | None] = list(
            dict.fromkeys([record.pooling for record in collection.encoders()] + list(self.options.poolings))
        )
        encoders = [load_encoder(collection, pooling, self.options.settings) for pooling in poolings or [None]]
        for notice in dict.fromkeys(notice for encoder in encoders for notice in encoder.notices):
            self.progress.message(notice)
        return Indexer(collection, encoders, self.progress.tokens, self.stop)

    def _write(self, collection: Collection, indexer: Indexer, batch: Sequence[Parsed]) -> None:
        """Write a batch: the documents in one transaction, then the failures."""
        english = any(encoder.checkpoint.model == "default" for _, encoder in indexer.encoders)
        documents = [_document(parsed, english=english) for parsed in batch if parsed.file is not None]
        for _, state in indexer.add(documents) if documents else []:
            self.report.indexed += state == "indexed"
            self.report.updated += state == "updated"
        self.report.warnings += [(each.external_id, text) for each in documents for text in each.warnings]
        failures = [(parsed, parsed.reason or "cannot be read") for parsed in batch if parsed.file is None]
        if failures:
            with collection.transaction() as transaction:
                for parsed, reason in failures:
                    transaction.fail(
                        Failure(
                            path=str(parsed.path),
                            reason=reason,
                            sha256=parsed.sha256,
                            size=parsed.size,
                            mtime_ns=parsed.mtime_ns,
                            at=now(),
                        )
                    )
        self.report.failed += [(str(parsed.path), reason) for parsed, reason in failures]


def _characters(parsed: Parsed) -> int:
    return sum(map(len, parsed.file.pages)) if parsed.file else 0


def _document(parsed: Parsed, *, english: bool) -> Document:
    file = parsed.file
    if file is None:
        raise ValueError(f"{parsed.path} was not read: {parsed.reason}")
    warnings = list(file.warnings)
    if english and parsed.language.confident and parsed.language.code != "en":
        warnings.append(f"mostly not English ({parsed.language.code}): the model knows English best")
    return Document(
        external_id=str(parsed.path),
        pages=file.pages,
        title=file.title,
        kind=file.kind,
        source="file",
        metadata=file.metadata,
        sha256=parsed.sha256,
        size=parsed.size,
        mtime_ns=parsed.mtime_ns,
        language=parsed.language.code,
        warnings=tuple(warnings),
    )
