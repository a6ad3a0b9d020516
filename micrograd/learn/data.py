"""Data for the chapters, small enough to come with the package."""

from __future__ import annotations

import bz2
from pathlib import Path
from types import MappingProxyType

_SHADES = "0123456789abcdefg"  # of a pixel, from paper to ink


class Digits(list[tuple[list[float], int]]):
    """Images of digits, each with what it shows, and what a page is told of them.

    Attributes:
        inputs: that 64 pixels are an image, for ``mg.explore(..., inputs=)``.
        classes: the names of the digits, for ``mg.explore(..., classes=)``.
    """

    inputs = MappingProxyType({"image": (8, 8)})
    classes = tuple("0123456789")


def digits() -> Digits:
    """400 handwritten digits: 64 pixels each, row by row from 0.0 (paper) to 1.0 (ink), and the digit.

    They are the first of the 1,797 of E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI
    Machine Learning Repository, https://doi.org/10.24432/C50P49, licensed under CC BY 4.0.

    Example:
        >>> pixels, digit = digits()[0]
        >>> len(pixels), max(pixels), digit, digits().inputs["image"]
        (64, 0.9375, 0, (8, 8))
    """
    packed = Path(__file__).with_name("digits.txt.bz2").read_bytes()
    digits, shades = bz2.decompress(packed).decode("ascii").split()
    # All images of a digit lie side by side, and so does each pixel of all images: that packs smaller
    pixels, count = [_SHADES.index(shade) / 16 for shade in shades], len(digits)
    column = {image: number for number, image in enumerate(sorted(range(count), key=digits.__getitem__))}
    return Digits((pixels[column[image] :: count], int(digit)) for image, digit in enumerate(digits))


def names() -> list[str]:
    """686 common first names in lower case, of the letters a to z, in alphabetical order.

    They were written for this project from general knowledge, under its licence.

    Example:
        >>> names()[:3]
        ['aaron', 'abigail', 'ada']
    """
    return Path(__file__).with_name("names.txt").read_text(encoding="ascii").split()
