"""A plug-in that can't even be imported."""

raise ImportError("a library is missing")
