"""What a user does to a collection besides adding files: remove documents, have them read anew, add a pooling."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexes.collection import Collection
from ingest.pipeline import Progress
from lmk_rag.indexing import Indexer, Settings, load_as_recorded, load_encoder, refuse_foreign


def remove(collection: Collection, documents: Iterable[int], failures: Iterable[str] = ()) -> int:
    """Remove documents, and notes about files that failed; the files themselves stay.

    Returns:
        How many documents were there and are gone.

    Raises:
        LockedError: another writer works.
    """
    with collection.write("remove"):
        with collection.transaction() as transaction:
            removed = sum(transaction.remove(document) for document in documents)
            for path in failures:
                transaction.forget_failure(path)
        collection.persist_caches()
    return removed


def mark_changed(collection: Collection, documents: Iterable[int]) -> list[Path]:
    """Make the next ingest read the files of these documents anew, whether they have changed or not.

    A document whose file is gone is left alone: it keeps its text.

    Returns:
        The files to ingest.

    Raises:
        LockedError: another writer works.
    """
    with collection.write("reindex"):
        found = [each for each in map(collection.get, documents) if each is not None and each.source == "file"]
        there = [each for each in found if Path(each.path).is_file()]
        with collection.transaction() as transaction:
            for each in there:
                transaction.touch(each.id, size=None, mtime_ns=None, sha256=None)
    return [Path(each.path) for each in there]


def add_pooling(
    collection: Collection,
    pooling: str,
    device: str = "auto",
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Embed every document of a collection by one pooling more, by the model that the others were made with.

    Each batch is committed, so that a run that was stopped goes on where it was.

    Args:
        collection: open, and not inside ``write``.
        pooling: lmk, mean, cls, mcls, lasttoken or max.
        device: auto, cpu, cuda or mps.
        progress: told what happens; sizes are in code points.
        stop: when it is set, the batch under way is finished and committed.

    Returns:
        How many documents were embedded.

    Raises:
        CollectionError: the collection cannot be used, its vectors come from elsewhere, or another writer works.
        ModelError: the model cannot be had.
    """
    told = progress or Progress()
    with collection.write(f"index {pooling}"):
        refuse_foreign(collection)
        encoder = load_encoder(collection, pooling, Settings(device=device))
        indexer = Indexer(collection, [encoder], told.tokens, stop, told.finished, told.embedding)
        [(record, _)] = indexer.encoders
        lacking = set(collection.missing(record.id))
        told.start(len(lacking), sum(each.characters for each in collection.documents() if each.id in lacking))
        made = indexer.add_missing()
        collection.persist_caches()
    return made


@dataclass(frozen=True, slots=True)
class Anew:
    """What was embedded anew.

    Attributes:
        embedded: number of documents by pooling.
        tokens: content tokens read, over all of them.
    """

    embedded: Mapping[str, int]
    tokens: int


def embed_anew(
    collection: Collection,
    settings: Settings,
    poolings: Sequence[str] = (),
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Anew:
    """Embed every document anew from its stored text, when the model or an adapter has changed.

    The old vectors serve searches until the new ones of a pooling are complete.

    Args:
        collection: open, and not inside ``write``.
        settings: the model to use; None in it means the collection's own.
        poolings: only these; none means all that the collection has.
        progress: told what happens; sizes are in code points.
        stop: when it is set, the batch under way is finished and committed.

    Raises:
        CollectionError: the collection cannot be used, its vectors come from elsewhere, or another writer works.
        ModelError: the model cannot be had.
    """
    told, stop = progress or Progress(), stop or threading.Event()
    embedded: dict[str, int] = {}
    with collection.write("reindex"):
        refuse_foreign(collection)
        wanted = poolings or [record.pooling for record in collection.encoders()]
        sizes = [document.characters for document in collection.documents()]
        told.start(len(sizes) * len(wanted), sum(sizes) * len(wanted))
        indexer = Indexer(collection, [], told.tokens, stop, told.finished, told.embedding)
        for pooling in wanted:
            if stop.is_set():
                break
            encoder = load_as_recorded(collection, pooling, settings)
            for notice in encoder.notices:
                told.message(notice)
            embedded[pooling] = indexer.replace(encoder)
        collection.persist_caches()
    return Anew(embedded, indexer.tokens)
