"""The collection on disk: SQLite for documents, text and vectors, FAISS as a cache of the vectors."""
