"""Files on disk become clean pages of text, and those become documents of a collection."""
