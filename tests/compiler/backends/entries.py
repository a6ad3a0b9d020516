"""Entries of the cache of compiled kernels, one at a time."""

from micrograd.compiler.backends.llvm import object_cache


def cached(key, make, load=bytes):
    contents = []

    def made(keys):
        assert keys == [key]
        contents.append(make())
        return contents[-1]

    def found(keys, content):
        assert keys == [key]
        load(content)
        contents.append(content)

    object_cache.cached([key], made, found)
    return contents[-1]
