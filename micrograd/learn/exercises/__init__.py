"""The exercises of the path, a module a chapter."""
