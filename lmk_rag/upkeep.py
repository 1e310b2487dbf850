"""What a user does to a collection besides adding files: remove documents, have them read anew, add a pooling."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from indexes.collection import Collection
from lmk_rag.indexing import Indexer, Settings, load_as_recorded, load_encoder


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
    folder: Path,
    pooling: str,
    device: str = "auto",
    progress: Callable[[int], None] | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Embed every document of a collection by one pooling more, by the model that the others were made with.

    Each batch is committed, so that a run that was stopped goes on where it was.

    Args:
        folder: of the collection.
        pooling: lmk, mean, cls, mcls, lasttoken or max.
        device: auto, cpu, cuda or mps.
        progress: told of positions that were embedded.
        stop: when it is set, the batch under way is finished and committed.

    Returns:
        How many documents were embedded.

    Raises:
        CollectionError: the collection cannot be used, or another writer works.
        ModelError: the model cannot be had.
    """
    with Collection.open(folder) as collection, collection.write(f"index {pooling}"):
        encoder = load_encoder(collection, pooling, Settings(device=device))
        made = Indexer(collection, [encoder], progress, stop).add_missing()
        collection.persist_caches()
    return made


def embed_anew(
    folder: Path,
    settings: Settings,
    progress: Callable[[int], None] | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Embed every document by each pooling of the collection anew, when the model or an adapter has changed.

    The old vectors serve searches until the new ones of a pooling are complete.

    Args:
        folder: of the collection.
        settings: the model to use; None in it means the collection's own.
        progress: told of positions that were embedded.
        stop: when it is set, the batch under way is finished and committed.

    Returns:
        How many embeddings were made.

    Raises:
        CollectionError: the collection cannot be used, or another writer works.
        ModelError: the model cannot be had.
    """
    stop = stop or threading.Event()
    made = 0
    with Collection.open(folder) as collection, collection.write("reindex"):
        indexer = Indexer(collection, [], progress, stop)
        for record in collection.encoders():
            if not stop.is_set():
                made += indexer.replace(load_as_recorded(collection, record.pooling, settings))
        collection.persist_caches()
    return made
