"""What can go wrong with a collection; each message is one sentence that a user can act on."""


class CollectionError(Exception):
    """A collection cannot be opened, read or written."""


class LockedError(CollectionError):
    """Another writer holds the collection."""


class SchemaError(CollectionError):
    """The collection was written by another version of the program."""


class FingerprintError(CollectionError):
    """An encoder or an embedding does not fit the encoder that the collection was made with."""


class FilterError(CollectionError):
    """A filter expression cannot be read."""


class MissingLibraryError(CollectionError):
    """FAISS is not installed, or cannot be loaded."""
