"""The demo that reads digits: its data, its report, and Ctrl-C."""

import csv
import gzip
import json
import os
import re
import runpy
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from micrograd.reports import page
from micrograd.tables.models import load
from micrograd.tables.reading import read_table
from micrograd.tables.study import prepare
from tests.demos.common import COMMAND
from tests.folders import DEMOS
from tests.interrupts import interrupted_while_training

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
    """What digits.py prints where Ctrl-C ends it after an epoch, and its report."""
    if os.name == "nt":
        pytest.skip("Windows has no SIGINT to send to one process")
    report = tmp_path_factory.mktemp("digits") / "new" / "report"
    options = "--output", report, "--epochs", 1000, "--hidden", HIDDEN
    code, output, errors = interrupted_while_training([*COMMAND, DEMOS / "digits.py", *map(str, options)], 180)
    assert code == 0, errors
    return output, report


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


def test_digits_reads_better_than_chance_when_ctrl_c_ends_its_training(digits):
    output, report = digits
    assert "Interrupted: the report is about the network as it is now" in output
    assert float(re.search(r"^Test accuracy: ([\d.]+)%", output, re.MULTILINE)[1]) > 30
    assert f"Report: {report}" in output


def test_digits_says_how_long_it_would_have_taken_without_the_compiler(digits):
    output, _ = digits
    assert re.search(r"^Without the compiler it would have taken about \d+\.\d minutes$", output, re.MULTILINE)


def test_digits_writes_its_report(digits):
    _, folder = digits
    assert {path.name for path in folder.iterdir()} == page.FILES
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "<title>Reading handwritten digits</title>" in text
    captions = re.findall("<figcaption>(.*?)</figcaption>", text)
    assert captions[:2] == ["The images that were misread", "The test rows: what is right, and what is predicted"]
    assert captions[-1] == "How the loss fell"
    assert "<h1 tabindex=0>Reading handwritten digits</h1>" in text
    assert '"name":"image","kind":"inputs"' in (folder / "worst-1.html").read_text(encoding="utf-8")
    assert re.search(r"\d+ of 360 images were misread, these 40 with the most confidence", text)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 12, 43])
def test_the_picture_of_the_misread_shows_those_first_that_it_was_surest_about(monkeypatch, count):
    monkeypatch.syspath_prepend(str(DEMOS))
    demo = runpy.run_path(str(DEMOS / "digits.py"))
    pixels, right = pd.DataFrame(np.eye(64)[:50]), pd.Series(["2"] * 50)
    given = [1 - place / 200 if place < count else 0.0 for place in range(50)]
    probabilities = pd.DataFrame({"2": [1 - share for share in given], "3": given})
    demo["draw_misread"](figure := Figure(), pixels, right, probabilities)
    shown = [axes.images[0].get_array().ravel().argmax() for axes in figure.axes]
    assert shown == list(range(min(count, 40)))
    assert [axes.get_title("right") for axes in figure.axes] == ["as 3"] * len(shown)
    assert figure.get_suptitle().startswith(f"{count} of 50 images were misread")
    assert demo["height_of"](count) == max(1, -(-len(shown) // 8))


def test_the_saved_model_makes_the_same_predictions(digits):
    output, folder = digits
    numbers = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    table = read_table(DEMOS / "data" / "digits.csv.gz", text=["digit"])
    model, tested = load(folder / "model.skops"), prepare(table, "digit").test
    right = (model.pipeline.predict(model.inputs(tested)) == tested["digit"]).sum()
    assert f"({right} of {len(tested)} rows)" in output
    assert numbers["network"]["hidden"] == [HIDDEN]
    assert numbers["scores"]["on test rows"]["accuracy"] == right / len(tested)


def test_a_folder_with_other_files_is_left_alone(tmp_path, refusal):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert refusal("digits.py", "--output", str(tmp_path)) == (
        1,
        f"{tmp_path} has other files in it, such as 'thesis.txt': choose another folder\n",
    )
