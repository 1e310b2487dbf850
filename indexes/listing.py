"""Figures of all documents at once, read without their text and their vectors."""

from indexes.reading import Reader


def token_counts(collection: Reader, encoder_id: int) -> dict[int, tuple[int, int]]:
    """Return, for each document that an encoder has embedded, the content tokens read and those left out."""
    found = collection._database.rows(
        "SELECT document_id, tokens, truncated FROM vectors WHERE encoder_id = ?", (encoder_id,)
    )
    return {document: (read, left) for document, read, left in found}
