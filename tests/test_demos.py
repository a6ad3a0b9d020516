"""The demos, run as a user runs them."""

from __future__ import annotations

import csv
import gzip
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

import micrograd as mg

pytest.importorskip("matplotlib")
pytest.importorskip("graphviz")

DEMOS = Path(__file__).parents[1] / "demos"
COMMAND = [sys.executable, "-W", "error", "-u"]
HIDDEN = 4


def run(demo, *options, path=None):
    """Run a demo where no display is, with modules that come before the installed ones in a folder."""
    environment = {name: text for name, text in os.environ.items() if name != "DISPLAY"}
    environment["MPLBACKEND"] = "TkAgg"
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), environment.get("PYTHONPATH", "")])
    command = [*COMMAND, str(DEMOS / demo), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def assert_refused(result, *words):
    """The demo ended with a message that has these words, and with no traceback."""
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def is_png(path):
    data = path.read_bytes()
    return data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")


def is_svg(path):
    return ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


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


def test_digits_writes_its_report(digits):
    _, report = digits
    files = {"loss.svg", "confusion.png", "misread.png", "neuron.svg", "model.json"}
    assert {path.name for path in report.iterdir()} == files
    assert is_svg(report / "loss.svg")
    assert is_svg(report / "neuron.svg")
    assert is_png(report / "confusion.png")
    assert is_png(report / "misread.png")


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
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not process.stdout.readline().startswith("Network"):
            assert process.poll() is None
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Interrupted: the report is about the network as it is now" in output
    assert "Test accuracy" in output
    assert len(list(tmp_path.iterdir())) == 5


@pytest.fixture(scope="module")
def moons(tmp_path_factory):
    """What a small run of moons.py prints, and its report."""
    report = tmp_path_factory.mktemp("moons")
    result = run("moons.py", "--output", report, "--epochs", 3, "--quiet")
    assert result.returncode == 0, result.stderr
    return result, report


def test_moons_tells_them_apart_and_draws_the_boundary(moons):
    result, report = moons
    assert float(re.search(r"^Accuracy: ([\d.]+)%", result.stdout, re.MULTILINE)[1]) > 75
    assert [path.name for path in report.iterdir()] == ["boundary.png"]
    assert is_png(report / "boundary.png")


def test_moons_compiled_comes_to_the_same(moons, tmp_path):
    result, _ = moons
    compiled = run("moons.py", "--output", tmp_path, "--epochs", 3, "--quiet", "--compile")
    accuracies = [re.search(r"^Accuracy: .*$", r.stdout, re.MULTILINE)[0] for r in (result, compiled)]
    assert accuracies[0] == accuracies[1]


def test_digits_says_how_long_it_would_have_taken_without_the_compiler(digits):
    result, _ = digits
    assert re.search(r"^Without the compiler it would have taken about \d+\.\d minutes$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("demo", "options", "words"),
    [
        ("digits.py", ["--epochs", "0"], ["--epochs", "below 1"]),
        ("digits.py", ["--hidden", "many"], ["--hidden", "many"]),
        ("moons.py", ["--output", __file__], ["--output", "cannot make the folder"]),
        ("moons.py", ["--nonsense"], ["--nonsense"]),
    ],
)
def test_bad_options_are_refused(demo, options, words):
    assert_refused(run(demo, *options), *words)


@pytest.mark.parametrize("demo", ["digits.py", "moons.py"])
def test_missing_matplotlib_is_named_at_once(demo, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('no matplotlib')")
    result = run(demo, path=tmp_path)
    assert_refused(result, "matplotlib", "pip install matplotlib")
    assert result.stdout == ""


def test_missing_graphviz_is_named_at_once(tmp_path):
    for name in ("graphviz", "pygraphviz"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name}')")
    result = run("digits.py", "--output", tmp_path, path=tmp_path)
    assert_refused(result, "Graphviz", "pip install graphviz pygraphviz")
    assert result.stdout == ""
