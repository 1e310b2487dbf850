"""The collection for other programs: over HTTP (rest) and over the Model Context Protocol (mcp)."""
