"""The demo that reads digits: its data, its report, and Ctrl-C."""

import csv
import gzip
import os
import re
import runpy
from collections import Counter
from xml.etree import ElementTree

import pytest

import micrograd as mg
from tests.demos.common import COMMAND, is_png, is_svg, run
from tests.folders import DEMOS
from tests.interrupts import interrupted_while_training

pytest.importorskip("matplotlib")
pytest.importorskip("graphviz")

pytestmark = pytest.mark.slow


HIDDEN = 4


def images():
    """The pixels and the digit of each image in the data file."""
    with gzip.open(DEMOS / "data" / "digits.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*(f"pixel{index}" for index in range(64)), "digit"]
    return [([int(pixel) for pixel in pixels], int(digit)) for *pixels, digit in rows]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """What a small run of digits.py prints, and its report."""
    report = tmp_path_factory.mktemp("digits") / "new" / "report"
    result = run("digits.py", "--output", report, "--epochs", 1, "--hidden", HIDDEN)
    assert result.returncode == 0, result.stderr
    return result, report


def test_the_data_are_the_whole_set():
    data = images()
    assert len(data) == 1797
    assert Counter(digit for _, digit in data) == dict(enumerate([178, 182, 177, 183, 181, 182, 181, 179, 174, 180]))
    assert all(len(pixels) == 64 and set(pixels) <= set(range(17)) for pixels, _ in data)


def test_the_data_file_says_nothing_about_when_or_where_it_was_made():
    start = (DEMOS / "data" / "digits.csv.gz").read_bytes()[:10]
    assert start[3:8] == bytes(5)  # no name, no comment, and the time 0


def test_the_data_are_attributed():
    text = (DEMOS / "data" / "README.md").read_text()
    assert "Alpaydin" in text
    assert "creativecommons.org/licenses/by/4.0" in text


def test_digits_reads_better_than_chance(digits):
    result, report = digits
    assert float(re.search(r"^Test accuracy: ([\d.]+)%", result.stdout, re.MULTILINE)[1]) > 30
    assert f"Report: {report}" in result.stdout


def test_digits_says_how_long_it_would_have_taken_without_the_compiler(digits):
    result, _ = digits
    assert re.search(r"^Without the compiler it would have taken about \d+\.\d minutes$", result.stdout, re.MULTILINE)


def test_digits_writes_its_report(digits):
    _, report = digits
    files = {"loss.svg", "confusion.png", "misread.png", "neuron.svg", "model.json"}
    assert {path.name for path in report.iterdir()} == files
    assert is_svg(report / "loss.svg")
    assert is_svg(report / "neuron.svg")
    assert is_png(report / "confusion.png")
    assert is_png(report / "misread.png")


@pytest.mark.parametrize("count", [0, 1, 7, 8, 12])
def test_the_picture_of_the_misread_has_no_empty_strips(tmp_path, monkeypatch, count):
    from matplotlib.image import imread

    monkeypatch.syspath_prepend(str(DEMOS))
    demo = runpy.run_path(str(DEMOS / "digits.py"))
    readings = []
    for index in range(20):
        guess = 3 if index < count else 2
        readings.append(demo["Reading"]([0.5] * 64, 2, [float(digit == guess) for digit in range(10)]))
    demo["draw_misread"](readings, tmp_path / "misread.png")
    ink = imread(tmp_path / "misread.png")[:, :, :3].min(axis=2) < 0.99
    rows, columns = ink.any(axis=1), ink.any(axis=0)
    for line in (rows, rows[::-1], columns, columns[::-1]):
        assert line.argmax() < 40  # pixels before the first that is not white


def test_the_drawn_neuron_has_names_and_gradients(digits):
    _, report = digits
    text = " ".join(ElementTree.parse(report / "neuron.svg").getroot().itertext())
    for name in ("output", "bias", "other inputs", "weight", "pixel", "tanh"):
        assert name in text


def test_the_saved_model_is_a_plain_network_that_makes_the_same_predictions(digits):
    result, report = digits
    model = mg.nn.MLP(64, [HIDDEN, 10], activation="tanh")
    model.load(report / "model.json")
    right = total = 0
    with mg.no_grad():
        for digit in range(10):
            for pixels, _ in [image for image in images() if image[1] == digit][::5]:
                scores = [score.data for score in model([pixel / 16 for pixel in pixels])]
                right += scores.index(max(scores)) == digit
                total += 1
    assert f"({right} of {total} images)" in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to one process")
def test_digits_reports_what_there_is_after_ctrl_c(tmp_path):
    command = [*COMMAND, str(DEMOS / "digits.py"), "--output", str(tmp_path), "--epochs", "1000", "--hidden", "2"]
    code, output, errors = interrupted_while_training(command)
    assert code == 0, errors
    assert "Interrupted: the report is about the network as it is now" in output
    assert "Test accuracy" in output
    assert len(list(tmp_path.iterdir())) == 5
