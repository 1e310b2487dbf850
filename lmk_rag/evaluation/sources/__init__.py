"""Readers of the plain sources (RFCs, HTML manuals, man pages) that evaluation and training text is built from."""
