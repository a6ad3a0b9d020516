"""The demo that makes up names."""

import os
import random
import re
import runpy
import subprocess
import sys

import pytest

from tests.demos.common import printed
from tests.folders import DEMOS

pytestmark = pytest.mark.slow


def test_names_makes_up_names(tmp_path):
    out = printed(tmp_path, "names.py", "--steps", 1, "--samples", 3, "--quiet")
    assert "step " not in out
    assert "Names: 686, of 26 different letters" in out
    assert "4,128 parameters" in out
    assert len(out.splitlines()[3:]) == 3


def test_names_makes_up_the_same_names_again(tmp_path):
    (tmp_path / "names.txt").write_text("ana\nbo\n", encoding="utf-8")
    first, again = (
        printed(tmp_path, "names.py", "names.txt", "--steps", 2, "--samples", 4, "--quiet") for _ in range(2)
    )
    assert first.splitlines()[3:] == again.splitlines()[3:]
    assert all(line.strip() for line in first.splitlines()[3:])


def test_names_compiled_learns_the_same(tmp_path):
    (tmp_path / "names.txt").write_text("ana\nbo\n", encoding="utf-8")
    eager, compiled = (
        printed(tmp_path, "names.py", "names.txt", "--steps", 3, "--samples", 2, *options)
        for options in (("--no-compile",), ())
    )
    loss = [re.search(r"loss ([\d.]+) to ([\d.]+)", out).groups() for out in (eager, compiled)]
    assert loss[0] == loss[1]


def test_names_on_four_devices_of_jax_begins_as_without_it(tmp_path, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # the demo asks for the devices itself
    (tmp_path / "names.txt").write_text("a\na\n", encoding="utf-8")
    eager, jax = (
        printed(tmp_path, "names.py", "names.txt", "--samples", 2, *options)
        for options in (("--steps", 1, "--no-compile"), ("--steps", 4, "--backend", "jax", "--devices", 4))
    )
    assert re.search("Training: 1 steps .*, loss [0-9.]+", jax)
    assert re.findall("loss [0-9.]+", jax) == re.findall("loss [0-9.]+", eager)


def test_names_that_are_filled_up_have_the_loss_that_they_had(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMOS))
    demo = runpy.run_path(str(DEMOS / "names.py"))
    random.seed(1)
    model = demo["Transformer"](4, 6)
    for tokens in ([0, 1, 0], [0, 3, 2, 1, 2, 0]):
        found = model.loss_of_filled(*demo["filled"](tokens, 6)).data
        assert found == pytest.approx(model.loss(tokens).data, rel=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--devices", "2"), "--devices needs --backend jax"),
        (("--backend", "numpy", "--no-compile"), "--backend numpy needs compiled programs: without --no-compile"),
        (("--backend", "cuda"), "invalid choice: 'cuda'"),
    ],
)
def test_names_refuses_options_that_do_not_go_together(refusal, options, message):
    code, error = refusal("names.py", *options)
    assert code == 2
    assert message in error


def test_names_shows_life_before_it_trains(tmp_path):
    """With the default options, and neither output on a terminal."""
    command = [sys.executable, str(DEMOS / "names.py")]
    environment = {**os.environ, "MICROGRAD_CACHE": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        first = process.stdout.readline().decode()
        training = process.poll() is None
        rest = process.stdout.read().decode()
    assert first.startswith("Names: 686")
    assert training
    assert len(rest.splitlines()) >= 22


def test_names_says_how_far_it_is_where_no_progress_bar_does(tmp_path):
    out = printed(tmp_path, "names.py", "--steps", 20, "--samples", 1, "--no-compile")
    steps = [int(step) for step in re.findall(r"^  step (\d+) of 20$", out, re.MULTILINE)]
    assert steps
    assert steps == sorted(set(steps))


def test_names_reads_any_alphabet(tmp_path):
    text = "\ufeffZoë\n\n  Łucja \nЮлия\n小明\n👩\u200d🚀\n" + "é" * 12 + "\n"
    (tmp_path / "names.txt").write_text(text, encoding="utf-8")
    out = printed(tmp_path, "names.py", "names.txt", "--steps", 1, "--samples", 2, "--temperature", 0.01)
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
