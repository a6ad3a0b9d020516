"""Ctrl-C at the end of a loop still leaves the with and try statements around it.

CPython 3.13 leaves the jump back after a condition out of the exception table (python/cpython#130279). An interrupt
there passes by the statements around the loop in the same function: a lock stays held, a recorder stays in use. So
such a loop stands in a function of its own, or in ``filter``.
"""

import dis
import sys
from pathlib import Path
from types import CodeType

import pytest

import micrograd

PACKAGE = Path(micrograd.__file__).parent
CATCHING = {"BaseException", "KeyboardInterrupt", "SystemExit"}
# Nothing is held there: a suppress, an error put in other words, a thread that gets no interrupts, files to be closed.
HARMLESS = {
    "_remove_leftovers",
    "_files",
    "ClosedOver.put_back",
    "Processes._exchanged",
    "Line._keep_writing",
    "_without_the_word_of_fontconfig",
    "_message",
}
WITH_FILTER = """
def f(lock, xs):
    with lock:
        return [x for x in xs if x]
"""


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def passing_by(code):
    """The lines of the jumps back at which an interrupt would pass by a statement that must see it."""
    instructions = {instruction.offset: instruction for instruction in dis.get_instructions(code)}
    entries = dis.Bytecode(code).exception_entries

    def handler(offset):
        while (found := next((each.target for each in entries if each.start <= offset < each.end), None)) is not None:
            if instructions[found].opname == "PUSH_EXC_INFO":  # not that of a comprehension, which raises again
                return found
            offset = found
        return None

    for offset, instruction in instructions.items():
        if instruction.opname == "JUMP_BACKWARD":
            missed = handler(instruction.argval)
            if missed is not None and handler(offset) is None and sees_interrupts(list(instructions.values()), missed):
                yield instruction.positions.lineno


def sees_interrupts(instructions, handler):
    """Whether a handler is that of a with, of a finally, or of an except that catches what is no Exception."""
    following = [each for each in instructions if each.offset > handler]
    names = set()
    for each in following:
        if each.opname == "CHECK_EXC_MATCH":
            return bool(names & CATCHING)
        if not each.opname.startswith(("LOAD_", "BUILD_TUPLE")):
            return True
        names.add(each.argval)
    return True


@pytest.mark.skipif(sys.version_info < (3, 13), reason="older Pythons have no such jumps")
def test_an_interrupt_at_the_end_of_a_loop_passes_no_statement_by():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for code in codes(compile(path.read_text(encoding="utf-8"), str(path), "exec")):
            if code.co_qualname not in HARMLESS:
                found += [f"{path.relative_to(PACKAGE)}:{line} in {code.co_qualname}" for line in passing_by(code)]
    assert found == []


@pytest.mark.skipif(sys.version_info[:2] != (3, 13), reason="of the jumps of 3.13")
def test_a_filter_inside_of_a_with_is_found():
    code = compile(WITH_FILTER, "example", "exec").co_consts[0]
    assert list(passing_by(code)) == [4]
