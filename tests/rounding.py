"""Floats of fewer digits, rounded by hand: nothing here depends on how a library rounds."""

import struct


def single(x):
    """The nearest number of 32 bits."""
    return struct.unpack("f", struct.pack("f", x))[0]


def half(x):
    """The nearest float of 16 bits, 11 of them digits."""
    return struct.unpack("e", struct.pack("e", x))[0]


def brain(x):
    """The nearest bfloat16, whose digits are 8 bits: the upper half of a float of 32, the tie to the even one."""
    (bits,) = struct.unpack("I", struct.pack("f", x))
    return struct.unpack("f", struct.pack("I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]
