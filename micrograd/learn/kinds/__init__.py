"""The kinds of exercises: how each is judged."""
