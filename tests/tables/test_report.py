"""What a report says and shows."""

import csv
import io
import json
import statistics
from xml.etree import ElementTree

import pytest

from micrograd.command.main import main
from micrograd.tables.predictor import load, split
from micrograd.tables.table import read_table
from tests.tables.common import QUICK, run, small_file, written

pytestmark = pytest.mark.slow


def test_the_report_has_its_files(small_report):
    names = {"report.html", "metrics.json", "model.json", "loss.svg", "confusion.svg", "neuron.svg"}
    assert {path.name for path in small_report.iterdir()} == names
    for name in names:
        if name.endswith(".svg"):
            assert ElementTree.parse(small_report / name).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    page = (small_report / "report.html").read_text(encoding="utf-8")
    for name in ("loss.svg", "confusion.svg", "neuron.svg"):
        assert f'src="{name}"' in page


def test_the_numbers_of_the_report_are_those_of_the_saved_model(small_report):
    numbers = json.loads((small_report / "metrics.json").read_text(encoding="utf-8"))
    table = read_table(small_report.parent / "small.csv")
    rows = split(table.column("kind"), 0.2, 1, stratified=True)
    test = table.without(set(range(60)) - rows)
    predictor = load(small_report / "model.json")
    right = [
        predictor.target.likeliest(p) == kind
        for p, kind in zip(predictor.predict(test), test.column("kind"), strict=True)
    ]
    assert numbers["on_test_rows"]["accuracy"] == statistics.fmean(right) > 0.8
    assert numbers["on_test_rows"]["rows"] == 12
    assert sum(map(sum, numbers["on_training_rows"]["confusion"])) == 48


def test_the_drawn_neuron_shows_its_inputs_and_gradients(small_report):
    text = " ".join(ElementTree.parse(small_report / "neuron.svg").getroot().itertext())
    for name in ("bias", "weight of size", "size", "weighted sum", "grad"):
        assert name in text


def test_the_same_seed_gives_the_same_report(small_report, tmp_path):
    words = ["train", str(small_report.parent / "small.csv"), "--target", "kind", "--epochs", "30", "--quiet"]
    assert main([*words, "-o", str(tmp_path / "again")]) == 0
    for path in small_report.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_the_drawn_neuron_sums_up_the_inputs_that_weigh_least(small_report, tmp_path, capsys):
    def drawn(folder):
        return " ".join(ElementTree.parse(folder / "neuron.svg").getroot().itertext())

    assert "other inputs" in drawn(small_report)  # it has four
    path = written(
        tmp_path / "table.csv", "x,y\n" + "".join(f"{row},{'no' if row < 9 else 'yes'}\n" for row in range(20))
    )
    words = ["train", path, "--target", "y", "--hidden", 2, "--epochs", 1, "-o", tmp_path / "report"]
    assert run(capsys, *words)[0] == 0
    assert "weight of x" in drawn(tmp_path / "report")
    assert "other inputs" not in drawn(tmp_path / "report")


def test_a_regression_has_a_scatter_plot(tmp_path, capsys):
    words = [
        "train",
        small_file(tmp_path),
        "--target",
        "weight",
        "--hidden",
        2,
        "--epochs",
        2,
        "-o",
        tmp_path / "report",
    ]
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0
    numbers = json.loads(out)
    assert numbers.pop("report") == str(tmp_path / "report")
    assert numbers == json.loads((tmp_path / "report" / "metrics.json").read_text(encoding="utf-8"))
    assert numbers["task"] == "regression"
    assert (tmp_path / "report" / "scatter.svg").exists()
    _, lines, _ = run(capsys, "predict", tmp_path / "report" / "model.json", tmp_path / "small.csv")
    _, records, _ = run(capsys, "predict", tmp_path / "report" / "model.json", tmp_path / "small.csv", "--json")
    header, *predictions = lines.split()
    assert header == "weight"
    assert [record["prediction"] for record in json.loads(records)] == pytest.approx([float(p) for p in predictions])


def test_what_is_left_out_is_on_the_page(tmp_path, capsys):
    path = written(
        tmp_path / "t.csv", "x,same,y\n" + "".join(f"{row},7,{row % 2 or ''}\n{row},7,no\n" for row in range(20))
    )
    words = ["train", path, "--target", "y", "-o", tmp_path / "report", *QUICK]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "Left out: same, because it is 7 in every row" in out
    assert "10 without a target are left out" in out
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "it is 7 in every row" in page
    assert "10, left out" in page


def test_names_are_shown_as_typed(tmp_path, capsys):
    names = ["<script>alert(1)</script>", "{a|b}", '"quoted"', "$x^2$ 🎉", "שלום", "a\nb", "&amp;", "%s \\ { }"]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows(
        [index, -index, index % 3, index % 2, index / 7, index % 5, index % 4, f"<b>{index % 2}"] for index in range(20)
    )
    path = written(tmp_path / "names.csv", text.getvalue())
    words = ["train", path, "--target", names[-1], "--hidden", 2, "--epochs", 1, "-o", tmp_path / "report"]
    code, _, err = run(capsys, *words)
    assert (code, err) == (0, "")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&amp;amp;" in page
    confusion = ElementTree.parse(tmp_path / "report" / "confusion.svg")
    assert "<b>0" in " ".join(confusion.getroot().itertext())
    assert run(capsys, "predict", tmp_path / "report" / "model.json", path)[0] == 0
