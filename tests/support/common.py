"""What tests about files share."""

import stat


def mode(path):
    """The permissions of a file or folder."""
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())
