"""The demo of MNIST's network."""

import gzip
import struct

import pytest

from tests.demos.common import printed

pytestmark = pytest.mark.slow


def idx(*shape, fill=None, kind=8):
    """A file of MNIST's format with these sizes, and all bytes the same."""
    size = 1
    for length in shape:
        size *= length
    body = bytes(size) if fill is None else bytes([fill]) * size
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, kind, len(shape), *shape) + body


def test_mnist_learns_from_enlarged_digits(tmp_path):
    out = printed(tmp_path, "mnist.py", "--samples", 1)
    assert "Images: 1,797, of which 1 to learn from and 1,000 to be tested on" in out
    assert "203,530 parameters" in out
    assert "A whole epoch of 1,797 images would take" in out
    assert "Test accuracy" in out


def test_mnist_reads_idx_files(tmp_path):
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(3, 28, 28, fill=0)))
    (tmp_path / "labels").write_bytes(idx(3, fill=7))
    out = printed(tmp_path, "mnist.py", "--images", "images.gz", "--labels", "labels", "--samples", 2)
    assert "Images: 3, of which 2 to learn from and 1 to be tested on" in out
    assert "Test accuracy: 100.0%" in out  # after a step it has learned that everything is a 7


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (b"", idx(2), "images is not an IDX file of bytes in 3 dimensions"),
        (idx(2, 28, 28, kind=9), idx(2), "images is not an IDX file"),
        (idx(2, 28, 28)[:9], idx(2), "images is cut off: 9 bytes"),
        (idx(2, 28, 28)[:-1], idx(2), "images is cut off or damaged: 2 x 28 x 28 bytes announced, 1,567 there"),
        (idx(2, 28, 28) + b"x", idx(2), "images is cut off or damaged"),
        (gzip.compress(idx(2, 28, 28), mtime=0)[:-9], idx(2), "Cannot read images"),
        (b"\x1f\x8b\x08\x00", idx(2), "Cannot read images"),
        (idx(2, 14, 56), idx(2), "images of 14 x 56 pixels, not 28 x 28"),
        (idx(2, 28, 28), idx(3), "images has 2 images, labels 3 labels"),
        (idx(2, 28, 28), idx(2, fill=10), "labels has the label 10"),
        (idx(2, 28, 28), None, "Cannot read labels"),
    ],
)
def test_mnist_says_what_is_wrong_with_a_file(tmp_path, refusal, images, labels, message):
    for name, content in (("images", images), ("labels", labels)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
    code, error = refusal("mnist.py", "--images", "images", "--labels", "labels")
    assert code == 1
    assert message in error
    assert len(error.splitlines()) == 1
