"""The demos of Newton's method, arrays, names and MNIST's network, run as a user runs them."""

import gzip
import os
import re
import runpy
import struct
import subprocess
import sys
from pathlib import Path

import pytest

DEMOS = Path(__file__).parent.parent / "demos"
PNG = b"\x89PNG\r\n\x1a\n"


def run(folder, demo, *options):
    """What a demo prints."""
    command = [sys.executable, "-W", "error", str(DEMOS / demo), *map(str, options)]
    settings = {**os.environ, "PYTHONUTF8": "1"}
    result = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", env=settings, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def refusal(tmp_path, monkeypatch, capsys):
    """The exit code of a demo that refuses to run, and what it says; in this process, which is faster."""

    def refusal(demo, *options):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(DEMOS))
        monkeypatch.setattr(sys, "argv", [demo, *options])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(DEMOS / demo), run_name="__main__")
        if isinstance(end.value.code, str):  # Python prints it and exits with 1
            return 1, end.value.code
        return end.value.code, capsys.readouterr().err

    return refusal


def test_newton_gets_there_in_far_fewer_steps(tmp_path):
    out = run(tmp_path, "newton.py", "--steps", 300, "--output", Path("deep", "er"))
    assert "[-215.6  -88. ]\n[[1330.  480.]\n [ 480.  200.]]" in out
    assert "Newton's method: 22 steps" in out
    assert "Gradient descent: 300 steps" in out
    assert "    22   1.00000   1.00000" in out
    pictures = sorted((tmp_path / "deep" / "er").iterdir())
    assert [picture.name for picture in pictures] == ["convergence.png", "paths.png"]
    assert all(picture.read_bytes().startswith(PNG) for picture in pictures)


def test_arrays_gives_the_gradients_of_the_article(tmp_path):
    out = run(tmp_path, "arrays.py")
    assert "gradient\n[[-2. -1.  0.  1.]\n [-2. -1.  0.  1.]]" in out
    assert "gradient\n[[-4.]\n [-2.]\n [ 0.]\n [ 2.]]" in out
    assert "n3 = sum of n2 = 12.0" in out
    picture = (tmp_path / "arrays.svg").read_text(encoding="utf-8")
    assert "<svg" in picture
    assert "l2[3, 0]" in picture


def test_names_makes_up_names(tmp_path):
    out = run(tmp_path, "names.py", "--steps", 1, "--samples", 3)
    assert "Names: 686, of 26 different letters" in out
    assert "4,128 parameters" in out
    assert len(out.splitlines()[3:]) == 3


def test_names_makes_up_the_same_names_again(tmp_path):
    (tmp_path / "names.txt").write_text("ana\nbo\n", encoding="utf-8")
    first, again = (run(tmp_path, "names.py", "names.txt", "--steps", 2, "--samples", 4) for _ in range(2))
    assert first.splitlines()[3:] == again.splitlines()[3:]
    assert all(line.strip() for line in first.splitlines()[3:])


def test_names_compiled_learns_the_same(tmp_path):
    (tmp_path / "names.txt").write_text("ana\nbo\n", encoding="utf-8")
    eager, compiled = (
        run(tmp_path, "names.py", "names.txt", "--steps", 3, "--samples", 2, *options)
        for options in ((), ("--compile",))
    )
    loss = [re.search(r"loss ([\d.]+) to ([\d.]+)", out).groups() for out in (eager, compiled)]
    assert loss[0] == loss[1]


def test_names_reads_any_alphabet(tmp_path):
    text = "\ufeffZoë\n\n  Łucja \nЮлия\n小明\n👩\u200d🚀\n" + "é" * 12 + "\n"
    (tmp_path / "names.txt").write_text(text, encoding="utf-8")
    out = run(tmp_path, "names.py", "names.txt", "--steps", 1, "--samples", 2, "--temperature", 0.01)
    letters = set("ZoëŁucjaЮлия小明👩\u200d🚀é")
    assert f"Names: 6, of {len(letters)} different letters" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "there are no names in it"),
        (b" \n\t\r\n", "there are no names in it"),
        (b"ana\n\xff\xfe\n", "it is not UTF-8 text"),
        (b"ana\n" + b"x" * 101, "a line is longer than 100 letters"),
    ],
)
def test_names_says_what_is_wrong_with_a_file(tmp_path, refusal, content, message):
    if content is not None:
        (tmp_path / "names.txt").write_bytes(content)
    code, error = refusal("names.py", "names.txt")
    assert (code, error.startswith("Cannot read names.txt: ")) == (1, True)
    assert message in error


def idx(*shape, fill=None, kind=8):
    """A file of MNIST's format with these sizes, and all bytes the same."""
    size = 1
    for length in shape:
        size *= length
    body = bytes(size) if fill is None else bytes([fill]) * size
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, kind, len(shape), *shape) + body


def test_mnist_learns_from_enlarged_digits(tmp_path):
    out = run(tmp_path, "mnist.py", "--samples", 1)
    assert "Images: 1,797, of which 1 to learn from and 1,000 to be tested on" in out
    assert "203,530 parameters" in out
    assert "A whole epoch of 1,797 images would take" in out
    assert "Test accuracy" in out


def test_mnist_reads_idx_files(tmp_path):
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(3, 28, 28, fill=0)))
    (tmp_path / "labels").write_bytes(idx(3, fill=7))
    out = run(tmp_path, "mnist.py", "--images", "images.gz", "--labels", "labels", "--samples", 2)
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
        (gzip.compress(idx(2, 28, 28))[:-9], idx(2), "Cannot read images"),
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("newton.py", "--steps", "0"), "0 is below 1"),
        (("newton.py", "--output", "file/report"), "cannot make the folder file/report"),
        (("arrays.py", "--depth", "3"), "unrecognized arguments"),
        (("names.py", "--temperature", "0"), "--temperature must be from 0.01 to 100"),
        (("names.py", "--temperature", "nan"), "--temperature must be from 0.01 to 100"),
        (("names.py", "--steps", "many"), "invalid at_least_one value: 'many'"),
        (("mnist.py", "--images", "file"), "--images and --labels go together"),
        (("mnist.py", "--samples", "1797"), "--samples must leave some to be tested on"),
    ],
)
def test_bad_options_are_refused(tmp_path, refusal, words, message):
    (tmp_path / "file").touch()
    code, error = refusal(*words)
    assert code == 2
    assert message in error
