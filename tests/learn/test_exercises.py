"""Every exercise: its solution passes, and each of its known mistakes gets the answer that is meant for it."""

import gzip
import re
from itertools import combinations

import pytest

import micrograd as mg
from micrograd.learn.catalogue import CHAPTERS, EXERCISES
from micrograd.learn.exercise import answer_of
from micrograd.learn.kinds.engines import OnPrograms
from micrograd.learn.kinds.graphs import PlantedMistake
from tests.folders import ROOT

ALL = [pytest.param(exercise, id=number) for number, exercise in EXERCISES.items()]
PAGES = {int(page.name[:2]): page for page in (ROOT / "docs" / "learn").glob("[0-9]*.md")}


def test_the_digits_are_the_first_of_the_data_set():
    lines = gzip.decompress((ROOT / "demos" / "data" / "digits.csv.gz").read_bytes()).decode().splitlines()[1:401]
    rows = [[int(number) for number in line.split(",")] for line in lines]
    assert mg.learn.digits() == [([pixel / 16 for pixel in pixels], digit) for *pixels, digit in rows]


def test_the_names_are_those_of_the_demonstration():
    assert mg.learn.names() == (ROOT / "demos" / "data" / "names.txt").read_text(encoding="utf-8").splitlines()


def plain(text):
    return " ".join(re.sub(r"[>`]", "", text).split())


@pytest.mark.slow
@pytest.mark.parametrize("exercise", ALL)
def test_the_solution_is_right_and_each_known_mistake_is_told_from_the_others(exercise):
    verdict = mg.learn.check(exercise.number, answer_of(exercise.solution))
    assert (bool(verdict), verdict.message) == (True, exercise.because)
    for mistake in exercise.mistakes:
        verdict = mg.learn.check(exercise.number, answer_of(mistake.answer(exercise.solution)))
        assert (bool(verdict), verdict.mistake) == (False, mistake.name)
        assert mistake.why in verdict.message
        facts, _, _ = verdict.message.partition(f"\n{mistake.why}")
        assert facts


def test_there_are_three_to_six_mistakes_and_each_says_something_else():
    for number, exercise in EXERCISES.items():
        assert 3 <= len(exercise.mistakes) <= 6, number
        for one, other in combinations(exercise.mistakes, 2):
            assert one.name != other.name, number
            assert one.source != other.source, number


def test_there_are_hints_and_none_is_empty():
    assert [n for n, exercise in EXERCISES.items() if len(exercise.hints) < 2 or not all(exercise.hints)] == []


@pytest.mark.parametrize(
    "exercise", [exercise for exercise in EXERCISES.values() if isinstance(exercise.kind, OnPrograms)],
    ids=lambda exercise: exercise.number,
)  # fmt: skip
def test_what_is_tried_on_programs_meets_operands_that_are_shared(exercise):
    """Also the smallest of all: an operation with one operand twice."""
    probes = exercise.kind.probes()
    steps = [step for program in probes for step in program.steps]
    if not steps:
        assert exercise.number == "3.1"
        return
    assert any(len(set(step.operands)) < len(step.operands) for step in steps)
    uses = [[step.operands.count(place) for step in p.steps] for p in probes for place in range(len(p.inputs))]
    assert any(sum(count > 0 for count in counts) > 1 for counts in uses)


@pytest.mark.parametrize(
    "exercise", [exercise for exercise in EXERCISES.values() if isinstance(exercise.kind, PlantedMistake)],
    ids=lambda exercise: exercise.number,
)  # fmt: skip
def test_the_record_in_the_question_is_the_one_that_is_judged(exercise):
    shown = re.findall(r"(\w) -> (\w) +(-?\d+)", exercise.question.partition("\n\n")[2])
    record = exercise.kind.record()
    assert shown == [(contribution.user, contribution.operand, f"{given:g}") for contribution, given in record]
    wrong = [(s.user, s.operand) for s, given in record if given != s.amount]
    assert wrong == [(exercise.kind.user, exercise.kind.operand)]


def test_numbers_are_those_of_the_chapters_in_order():
    for chapter in CHAPTERS:
        count = len(chapter.exercises)
        assert [exercise.number for exercise in chapter.exercises] == [
            f"{chapter.number}.{i + 1}" for i in range(count)
        ]
    assert [chapter.number for chapter in CHAPTERS] == list(range(1, len(CHAPTERS) + 1))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.title)
def test_a_chapter_asks_what_its_exercises_ask(chapter):
    text = PAGES[chapter.number].read_text(encoding="utf-8")
    assert text.startswith(f"# {chapter.number}. {chapter.title}\n")
    for exercise in chapter.exercises:
        heading = f"{exercise.number} {exercise.title}"
        assert f"**{heading}**" in text if heading.endswith("?") else f"**{heading}.**" in text
        assert plain(exercise.question) in plain(text)
    checked = re.findall(r'learn\.check\("([\d.]+)"', text)
    assert list(dict.fromkeys(checked)) == [exercise.number for exercise in chapter.exercises]


def test_every_chapter_is_in_the_catalogue_and_in_the_index():
    index = (ROOT / "docs" / "learn" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(\d+)\. \[([^\]]+)\]\((\d\d-[\w-]+\.md)\)", index, re.MULTILINE)
    assert [(int(number), name) for number, _, name in listed] == [(n, PAGES[n].name) for n in sorted(PAGES)]
    assert [chapter.title for chapter in CHAPTERS] == [title for _, title, _ in listed][: len(CHAPTERS)]
