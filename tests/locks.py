"""Whether a lock is held while something runs. A test that asks this fails whenever the lock is left out.

Threads that run into each other do so once in a while only, however often they take turns.
"""

import threading


def is_held(lock):
    """Whether another thread finds the lock taken; whoever holds it may take it again, and so cannot tell."""
    found = []

    def ask():
        is_free = lock.acquire(blocking=False)
        found.append(not is_free)
        if is_free:
            lock.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found == [True]
