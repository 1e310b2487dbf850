"""Search and question answering over long documents that are embedded whole, by landmark pooling."""

__version__ = "0.1.0"
