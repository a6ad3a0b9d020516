"""Chapter 2, A graph: parts that are shared, and why gradients add."""

from __future__ import annotations

from micrograd import functional
from micrograd.engine.value import Value
from micrograd.learn.contributions import named
from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.graphs import BackwardOrder, Paths, PlantedMistake, Reach, Zeros
from micrograd.learn.kinds.values import Gradients, Number


def _shared() -> Value:
    x, y = Value(2.0, label="x"), Value(3.0, label="y")
    a = named("a", x * y)
    b = named("b", a + x)
    return named("f", a * b)


def _square_and_line() -> Value:
    x, w = Value(3.0, label="x"), Value(2.0, label="w")
    a = named("a", x * x)
    b = named("b", w * x)
    return named("f", a + b)


def _sum_and_product() -> Value:
    x, y = Value(4.0, label="x"), Value(3.0, label="y")
    s = named("s", x + y)
    p = named("p", x * y)
    return named("f", s * p)


def _long() -> Value:
    x, y, z = Value(2.0, label="x"), Value(-1.0, label="y"), Value(3.0, label="z")
    a = named("a", x * y)
    b = named("b", a + z)
    c = named("c", b * x)
    d = named("d", c - a)
    return named("f", d * b)


def _quiet() -> tuple[Value, dict[str, Value]]:
    x, y, z = Value(2.0, label="x"), Value(3.0, label="y"), Value(-5.0, label="z")
    u, v, w = Value(4.0, label="u"), Value(0.0, label="v"), Value(7.0, label="w")
    a = x * y + functional.relu(z) + (u - u) + v * w
    return named("f", a), {value.label: value for value in (x, y, z, u, v, w, Value(1.0, label="t"))}


def _two_factors(x: float, y: float, z: float) -> Value:
    a = named("a", Value(x, label="x") * 3)
    b = named("b", Value(y, label="y") + Value(z, label="z"))
    return named("f", a * b)


REASONS = {
    "unused": "the result was not computed from it, and this one was used",
    "switched off": "no relu on its way is in its flat part",
    "cancels": "its contributions do not add up to zero",
    "times zero": "no local derivative on its way is a factor that is 0",
}
WHY_PLANTED = "Go on: for each edge, the gradient before the arrow times the local derivative is the contribution."

EXERCISES = (
    Exercise(
        "2.1",
        "A square and a line",
        "Take a = x * x, b = w * x, f = a + b, with x = 3 and w = 2. Work out the gradients by hand: "
        'a dict for "x" and "w".',
        Gradients(_square_and_line, ("x", "w")),
        (
            "x stands in three places: two times in a, once in b.",
            "From a comes 3 for one place and 3 for the other. What comes from b?",
        ),
        '{"x": 3.0 + 3.0 + 2.0, "w": 3.0}',
        "Three uses, three contributions, one sum.",
        (
            Mistake("the last one wins", '{"x": 2.0, "w": 3.0}', "This happens to who writes = in place of +=."),
            Mistake("the first one stays", '{"x": 6.0, "w": 3.0}', "x has another use: in b."),
            Mistake(
                "one x of the square", '{"x": 5.0, "w": 3.0}', "x * x has two places for x. Nudge x, and both move."
            ),
            Mistake("multiplied", '{"x": 18.0, "w": 3.0}', "Along a path you multiply; where paths meet, you add."),
        ),
    ),
    Exercise(
        "2.2",
        "Which node comes next?",
        'Take a = x * y, b = a + x, f = a * b. In which order may the Values "f", "a", "b", "x", "y" pass their '
        "gradients on? Each is visited once, and its gradient must be complete by then. There are several right "
        "orders; give one, as a list.",
        BackwardOrder(_shared),
        ("f is first. Who is waiting for nobody but f?", "a is used two times: in f and in b. So a waits for both."),
        '["f", "b", "a", "x", "y"]',
        "Every order is right in which a Value comes after all that use it.",
        (
            Mistake("as it is computed", '["x", "y", "a", "b", "f"]', "This is the forward order. Reverse it."),
            Mistake("a too early", '["f", "a", "b", "x", "y"]', "a is an operand of f, but of b as well."),
            Mistake("x too early", '["f", "b", "x", "a", "y"]', "x is used in b and in a; it waits for both."),
            Mistake("leaves first", '["f", "x", "y", "b", "a"]', "x and y are at the end of every path."),
        ),
    ),
    Exercise(
        "2.3",
        "By which paths?",
        "Take s = x + y, p = x * y, f = s * p, with x = 4 and y = 3. The gradient of x comes by two paths. Split it: a "
        'dict with a number for each path, such as {"f -> s -> x": 1.0, ...}.',
        Paths(_sum_and_product, "x"),
        (
            "Along a path, multiply the local derivatives of its edges.",
            "From f to s the local derivative is p, which is 12. From s to x it is 1.",
            "From f to p it is s, which is 7. From p to x it is y.",
        ),
        '{"f -> s -> x": 12.0 * 1.0, "f -> p -> x": 7.0 * 3.0}',
        "12 by one path and 21 by the other: the gradient of x is 33.",
        (
            Mistake("one path", '{"f -> p -> x": 21.0}', "x is also in s."),
            Mistake(
                "added along the path",
                '{"f -> s -> x": 13.0, "f -> p -> x": 10.0}',
                "Think of gears: a factor for each edge.",
            ),
            Mistake(
                "the first edges crossed",
                '{"f -> s -> x": 7.0, "f -> p -> x": 36.0}',
                "f = s * p moves p times as much as s does: a factor gets the other one.",
            ),
            Mistake(
                "the last edge of the product",
                '{"f -> s -> x": 12.0, "f -> p -> x": 28.0}',
                "p = x * y moves y times as much as x does, and y is 3.",
            ),
        ),
    ),
    Exercise(
        "2.4",
        "Find the bug: a sign",
        "Here is the record of a backward pass, edge by edge. Take a = x * y, b = a + z, c = b * x, d = c - a, "
        "f = d * b, with x = 2, y = -1, z = 3. So a = -2, b = 1, c = 2, d = 4, f = 4. One edge has a wrong "
        'contribution; what follows it is computed from it. Which edge is it? Write it as "f -> d".\n\n'
        "    f -> d    1\n    f -> b    4\n    d -> c    1\n    d -> a    1\n    c -> b    2\n    c -> x    1\n"
        "    b -> a    6\n    b -> z    6\n    a -> x   -7\n    a -> y   14",
        PlantedMistake(_long, "d", "a", lambda right: -right.amount),
        ("Check the edges from the top: gradient times local derivative.", "d = c - a. How does d move when a grows?"),
        '"d -> a"',
        "A difference passes the gradient on to its second operand with a minus.",
        (
            Mistake("what follows", '"a -> x"', WHY_PLANTED + " The bug is further up."),
            Mistake("the largest", '"a -> y"', WHY_PLANTED + " A large number is not a wrong one."),
            Mistake("the other operand", '"d -> c"', "d = c - a moves with c as much as c does. What about a?"),
            Mistake("a sum of two", '"b -> a"', "b has 4 from f and 2 from c: 6 is right."),
        ),
    ),
    Exercise(
        "2.5",
        "Find the bug: a stale number",
        "The same graph again, and another bug: Take a = x * y, b = a + z, c = b * x, d = c - a, f = d * b, with "
        "x = 2, y = -1, z = 3; so a = -2, b = 1, c = 2, d = 4, f = 4. One operation used a number that is not the one "
        "of this forward pass. On which edge?\n\n"
        "    f -> d    1\n    f -> b    4\n    d -> c    1\n    d -> a   -1\n    c -> b    3\n    c -> x    1\n"
        "    b -> a    7\n    b -> z    7\n    a -> x   -6\n    a -> y   12",
        PlantedMistake(_long, "c", "b", lambda right: right.gradient * (right.local + 1.0)),
        (
            "Divide each contribution by the gradient before its arrow: that is the local derivative that was used.",
            "c = b * x, so b gets the gradient of c times x. What is x?",
        ),
        '"c -> b"',
        "b got 3 times the gradient of c, as if x were 3. An engine keeps the numbers of the forward pass for this.",
        (
            Mistake("what follows", '"b -> a"', WHY_PLANTED + " b has 4 + 3 here, and passes that on."),
            Mistake("its neighbour", '"c -> x"', "c = b * x moves b times as much as x does, and b is 1."),
            Mistake("the leaf", '"b -> z"', "A sum passes on what it has. What it has may be wrong: look further up."),
            Mistake("the sign", '"d -> a"', "A minus belongs here: d = c - a."),
        ),
    ),
    Exercise(
        "2.6",
        "Exactly zero, and why",
        "Take f = x * y + relu(z) + (u - u) + v * w, with x = 2, y = 3, z = -5, u = 4, v = 0, w = 7, and t = 1, which "
        "is not used. relu(z) is z where z is positive, and 0 elsewhere. Which of these have a gradient of exactly 0? "
        'A dict with a reason for each: "unused", "switched off", "cancels" or "times zero".',
        Zeros(_quiet, REASONS, {"z": "switched off", "u": "cancels", "w": "times zero", "t": "unused"}),
        (
            "Nudge each one in your head: does f move?",
            "In v * w, w gets v times the gradient, and v gets w times it. One of these is 0.",
            "There are four.",
        ),
        '{"z": "switched off", "u": "cancels", "w": "times zero", "t": "unused"}',
        "Four zeros with four reasons. Only one of them, t, is not in the graph at all.",
        (
            Mistake(
                "v for w",
                '{"z": "switched off", "u": "cancels", "v": "times zero", "t": "unused"}',
                "v is 0, but what it gets is w. It is w that gets v.",
            ),
            Mistake(
                "u forgotten",
                '{"z": "switched off", "w": "times zero", "t": "unused"}',
                "u gets two contributions. What is their sum?",
            ),
            Mistake(
                "u unused",
                '{"z": "switched off", "u": "unused", "w": "times zero", "t": "unused"}',
                "u is used, two times: 1 comes back by one edge and -1 by the other.",
            ),
            Mistake(
                "both of the product",
                '{"z": "switched off", "u": "cancels", "v": "times zero", "w": "times zero", "t": "unused"}',
                "If v grows by 0.01, v * w becomes 0.07.",
            ),
        ),
    ),
    Exercise(
        "2.7",
        "A gradient to order",
        "Take a = x * 3, b = y + z, f = a * b, with x = 2, y = 1, z = 3. Change one of the three inputs so that the "
        'gradient of a becomes 10. Answer with a dict, such as {"x": 5.0}.',
        Reach(_two_factors, {"x": 2.0, "y": 1.0, "z": 3.0}, "a", 10.0),
        ("What is the gradient of a made of?", "a gets the other factor, b, which is y + z. Make that 10."),
        '{"y": 7.0}',
        "The gradient of a factor is the other factor. Changing x does nothing to it.",
        (
            Mistake("its own input", '{"x": 10.0}', "x moves a itself. The gradient of a is b."),
            Mistake("the whole of it", '{"y": 10.0}', "b is y + z: the other one still counts."),
            Mistake("by so much more", '{"y": 6.0}', "The gradient was 4 and shall be 10; y was 1, and grows by 6."),
            Mistake("z the same way", '{"z": 10.0}', "b is y + z: y still counts."),
        ),
    ),
    Exercise(
        "2.8",
        "Twice",
        "Take f = x * x with x = 3, and call f.backward() two times. What is x.grad then?",
        Number(),
        ("Once gives 6.", "A leaf adds up what it is given, until its grad is set to 0."),
        "12.0",
        "Leaves add up over calls. That is how a batch is summed, and why each training step begins with zeros.",
        (
            Mistake("as if once", "6.0", "The leaf keeps what it had and adds the second 6."),
            Mistake("one place, once", "3.0", "x stands in two places, and each contributes to its gradient."),
            Mistake("squared", "36.0", "The second call adds to the first; it does not multiply."),
            Mistake("the result too", "18.0", "Only leaves add up. Results between start again with each call."),
        ),
    ),
    Exercise(
        "2.9",
        "Fewer nodes",
        "x*x + 2*(x*y) + y*y makes six results: four products and two sums. Write a function of x and y that has the "
        "same value and the same gradients, and makes only two.",
        Same([(2.0, 3.0), (-1.5, 0.5), (0.0, 2.0), (1.0, -1.0)], gradients=True, most_nodes=2),
        ("It is the square of something.", "A result can be used twice: give it a name."),
        "def square_of_sum(x, y):\n    total = x + y\n    return total * total",
        "A shared result is computed once, and the sum of its two contributions passes through it once.",
        (
            Mistake("as it stands", "lambda x, y: x*x + 2*(x*y) + y*y", "What is this the square of?"),
            Mistake(
                "the sum twice", "lambda x, y: (x + y) * (x + y)", "x + y is computed two times here: give it a name."
            ),
            Mistake("without the mixed term", "lambda x, y: x*x + y*y", "(x + y) squared has 2*x*y in it as well."),
            Mistake(
                "without a graph",
                "def square_of_sum(x, y):\n    total = getattr(x, 'data', x) + getattr(y, 'data', y)\n"
                "    return mg.Value(total * total)",
                "The numbers are right, but the graph is lost: compute with the Values themselves.",
            ),
        ),
    ),
)
