"""Documents become entries of a collection: text is embedded by each of its encoders and written in one transaction.

Ingest, the LangChain adapter and re-indexing all come through here.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from indexes.collection import Collection
from indexes.errors import CollectionError, FingerprintError
from indexes.records import Document, EncoderRecord, StoredEmbedding
from lmk_rag.evidence import EVIDENCE_RATIO, store

if TYPE_CHECKING:
    from lmk_rag.encoding.encoder import Encoder

Item = TypeVar("Item")

_CHARACTERS_A_POSITION = 25
"""Code points embedded and committed at once, for each position of the encoder's own batches: some six batches, enough
windows of each length to fill them, and a few seconds of work on either kind of hardware."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an encoder is to be loaded; None means the collection's own, else the checkpoint's own.

    A ``max_tokens`` of 0 means all, whatever the collection has.
    """

    model: str | None = None
    granularity: int | None = None
    max_tokens: int | None = None
    device: str = "auto"


def own_records(collection: Collection) -> list[EncoderRecord]:
    """List the encoders of a collection that are this program's, and not another LangChain embedding."""
    return [record for record in collection.encoders() if "base" in record.fingerprint]


def refuse_foreign(collection: Collection) -> None:
    """Refuse to embed into a collection whose vectors come from elsewhere.

    Raises:
        CollectionError: naming the LangChain embedding that made them.
    """
    foreign = [record for record in collection.encoders() if "base" not in record.fingerprint]
    if foreign:
        raise CollectionError(
            f"The vectors of {collection.path} were made by {foreign[0].fingerprint.get('class')} through LangChain, "
            "which this command cannot ask: add documents through the same LMKVectorStore, or name another collection."
        )


def load_encoder(collection: Collection, pooling: str | None, settings: Settings) -> "Encoder":
    """Load the encoder of a collection's pooling, as it was when the collection was made.

    Args:
        collection: where the encoder's settings were written at its first use.
        pooling: lmk, mean, cls, mcls, lasttoken or max; None for the model's own.
        settings: what the user asked for.

    Raises:
        FingerprintError: where the loaded encoder is not the one that made the collection's vectors.
        ModelError: where the model cannot be had.
    """
    encoder = load_as_recorded(collection, pooling, settings)
    record = collection.encoder(encoder.pooling)
    if record:
        check_fingerprint(collection, record, encoder.fingerprint())
    return encoder


def load_as_recorded(collection: Collection, pooling: str | None, settings: Settings) -> "Encoder":
    """Load an encoder by the settings asked for, then the collection's, then the checkpoint's; nothing is checked."""
    from lmk_rag.encoding.encoder import Encoder

    records = own_records(collection)
    record = (collection.encoder(pooling) if pooling else None) or next(iter(records), None)
    known = record.fingerprint if record else {}  # a new pooling joins the others with their settings
    model = settings.model or known.get("model") or "default"
    granularity = known.get("granularity") if model == known.get("model") else None  # another model has its own
    limit = known.get("max_tokens") if settings.max_tokens is None else settings.max_tokens
    return Encoder.load(
        model,
        pooling=pooling,
        granularity=settings.granularity or granularity,
        max_tokens=limit or None,
        device=settings.device,
    )


def differing(recorded: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> list[str]:
    """List the entries in which two fingerprints differ; ``model``, where it was loaded from, does not count."""
    return [key for key in sorted({*recorded, *fingerprint} - {"model"}) if recorded.get(key) != fingerprint.get(key)]


def check_fingerprint(collection: Collection, record: EncoderRecord, fingerprint: Mapping[str, Any]) -> None:
    """Refuse an encoder whose vectors do not compare with the collection's.

    Raises:
        FingerprintError: naming the first entry that differs, with both values.
    """
    for key in differing(record.fingerprint, fingerprint):
        raise FingerprintError(
            f"The {record.pooling} vectors of {collection.path} were made with {key} "
            f"{_short(record.fingerprint.get(key))}, and this encoder has {key} {_short(fingerprint.get(key))}: use "
            f"the model that made them, or run `lmk-rag reindex --collection {collection.path}` with this one."
        )


def _short(value: object) -> str:
    text = str(value)
    return f"{text[:12]}…" if len(text) > 40 else text


class Indexer:
    """Writes documents with their embeddings; used by one thread, inside ``collection.write``."""

    def __init__(
        self,
        collection: Collection,
        encoders: Sequence["Encoder"],
        progress: Callable[[int], None] | None = None,
        stop: threading.Event | None = None,
        committed: Callable[[int, int], None] | None = None,
        begun: Callable[[int, int], None] | None = None,
    ) -> None:
        """Take a collection open for writing and the encoders of its poolings; new ones are registered.

        Args:
            collection: must be inside ``collection.write``.
            encoders: one a pooling; their fingerprints have been checked.
            progress: called with the number of positions embedded after each batch.
            stop: when it is set, the batch under way is finished and committed, and no other is begun.
            committed: called after each batch of documents that were in the collection already, with their number and
                their code points.
            begun: called before each such batch with its code points, as a size and as code points.

        Afterwards ``tokens`` counts the content tokens that were embedded, and ``cut`` names the documents of which
        ``max_tokens`` left some unread, with how many.
        """
        self.collection = collection
        self.progress = progress
        self.stop = stop or threading.Event()
        self.committed = committed
        self.begun = begun
        self.tokens = 0
        self.cut: list[tuple[str, int]] = []
        self.encoders = [
            (collection.encoder(encoder.pooling) or _register(collection, encoder), encoder) for encoder in encoders
        ]

    @property
    def batch_characters(self) -> int:
        """Tell how many code points are best added at once."""
        return _CHARACTERS_A_POSITION * min(encoder.inference.budget for _, encoder in self.encoders)

    def add(self, documents: Sequence[Document]) -> list[tuple[int, Literal["indexed", "updated"]]]:
        """Embed documents and write them in one transaction: all of them are there afterwards, or none.

        Returns:
            Each document's id, and whether it is new or replaces one of the same source and external id.
        """
        texts = [document.text for document in documents]
        digests = [document.text_sha256 for document in documents]
        embedded = {record.id: self._embed(record, encoder, texts, digests) for record, encoder in self.encoders}
        for record, encoder in self.encoders:
            if encoder.max_tokens is not None:
                cut = zip(documents, embedded[record.id], strict=True)
                self.cut += [(document.external_id, made.truncated) for document, made in cut if made.truncated]
        with self.collection.transaction() as transaction:
            return [
                transaction.put(document, {number: found[place] for number, found in embedded.items()})
                for place, document in enumerate(documents)
            ]

    def add_missing(self) -> int:
        """Embed documents that lack a vector of one of the encoders, from their stored text.

        Returns:
            How many embeddings were made; each batch is committed, so that an interrupted run goes on from there.
        """
        return sum(self._fill(record, encoder) for record, encoder in self.encoders)

    def replace(self, encoder: "Encoder") -> int:
        """Embed every document anew by another encoder of the same pooling, which takes over when all are done.

        Searches use the old vectors until then; an interrupted run goes on where it stopped.

        Returns:
            How many embeddings were made.
        """
        record = self.collection.encoder(encoder.pooling)
        if record is None or differing(record.fingerprint, encoder.fingerprint()):
            record = _register(self.collection, encoder, active=False)
        made = self._fill(record, encoder)
        if not self.stop.is_set():
            self._take_over(record)
        return made

    def _take_over(self, record: EncoderRecord) -> None:
        """Make an encoder the active one of its pooling, and drop what an abandoned change has left."""
        every = [each for each in self.collection.encoders(active_only=False) if each.pooling == record.pooling]
        if [each.id for each in every if each.active] == [record.id] and len(every) == 1:
            return
        with self.collection.transaction() as transaction:
            transaction.activate(record.id)
            for each in every:
                if each.id != record.id and not each.active:
                    transaction.drop_encoder(each.id)

    def _fill(self, record: EncoderRecord, encoder: "Encoder") -> int:
        made = 0
        missing = (self.collection.get(document_id) for document_id in self.collection.missing(record.id))
        limit = _CHARACTERS_A_POSITION * encoder.inference.budget
        for batch in batches((each for each in missing if each), lambda each: each.characters, limit):
            if self.stop.is_set():
                break
            characters = sum(document.characters for document in batch)
            if self.begun:
                self.begun(characters, characters)
            texts = [self.collection.text(document.id) for document in batch]
            embeddings = self._embed(record, encoder, texts, [document.text_sha256 for document in batch])
            with self.collection.transaction() as transaction:
                for document, embedding in zip(batch, embeddings, strict=True):
                    transaction.put_embedding(document.id, record.id, embedding)
            made += len(batch)
            if self.committed:
                self.committed(len(batch), characters)
        return made

    def _embed(
        self, record: EncoderRecord, encoder: "Encoder", texts: Sequence[str], digests: Sequence[str]
    ) -> list[StoredEmbedding]:
        """Embed each distinct text once; a text that the collection holds already is not embedded again."""
        known: dict[str, StoredEmbedding] = {}
        for digest in set(digests):
            found = self.collection.embedding_of_text(record.id, digest)
            if found is not None:
                known[digest] = found
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        made = encoder.encode_documents(list(new.values()), self.progress)
        ratio = self.collection.evidence_ratio or EVIDENCE_RATIO
        for (digest, text), embedding in zip(new.items(), made, strict=True):
            known[digest] = store(embedding, text, ratio)
            self.tokens += embedding.tokens
        return [known[digest] for digest in digests]


def _register(collection: Collection, encoder: "Encoder", *, active: bool = True) -> EncoderRecord:
    with collection.transaction() as transaction:
        return transaction.add_encoder(encoder.pooling, encoder.fingerprint(), encoder.dimension, active=active)


def batches(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Group items in the order given until their sizes pass a limit; a larger item is a group of its own."""
    batch: list[Item] = []
    total = 0
    for item in items:
        if batch and total + size(item) > limit:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch
