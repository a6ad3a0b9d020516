"""Chapter 3, Build your own micrograd: twelve small steps, each checked.

Each solution is the class as it stands after that step, so a learner who is stuck can go on from it.
"""

from __future__ import annotations

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.engines import Engine, Order

NUMBER = """
class Value:
    def __init__(self, data):
        self.data = data
        self.grad = 0.0

    def __repr__(self):
        return f"Value(data={self.data}, grad={self.grad})"
"""
ADDS = """
    def __add__(self, other):
        return Value(self.data + other.data)
"""
MULTIPLIES = """
    def __mul__(self, other):
        return Value(self.data * other.data)
"""
REMEMBERS = """
class Value:
    def __init__(self, data, operands=(), op=""):
        self.data = data
        self.grad = 0.0
        self._prev = set(operands)
        self._op = op

    def __repr__(self):
        return f"Value(data={self.data}, grad={self.grad})"

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), "+")

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), "*")
"""
START = """
class Value:
    def __init__(self, data, operands=(), op=""):
        self.data = data
        self.grad = 0.0
        self._prev = set(operands)
        self._op = op
        self._backward = lambda: None

    def __repr__(self):
        return f"Value(data={self.data}, grad={self.grad})"
"""
SUM = """
    def __add__(self, other):
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out
"""
PRODUCT = """
    def __mul__(self, other):
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out
"""
ORDER = """
def order_of(root):
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for operand in node._prev:
                visit(operand)
            order.append(node)

    visit(root)
    return order
"""
BACKWARD = """
    def backward(self):
        self.grad = 1.0
        for node in reversed(order_of(self)):
            node._backward()
"""
WRAPS = "        other = other if isinstance(other, Value) else Value(other)\n"
PLAIN_SUM = (
    SUM.replace("        out =", f"{WRAPS}        out =")
    + """
    def __radd__(self, other):
        return self + other
"""
)
PLAIN_PRODUCT = (
    PRODUCT.replace("        out =", f"{WRAPS}        out =")
    + """
    def __rmul__(self, other):
        return self * other
"""
)
DIFFERENCE = """
    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-1) * other

    def __rsub__(self, other):
        return (-self) + other
"""
POWER = """
    def __pow__(self, exponent):
        out = Value(self.data**exponent, (self,), "**")

        def _backward():
            self.grad += exponent * self.data ** (exponent - 1) * out.grad

        out._backward = _backward
        return out

    def __truediv__(self, other):
        return self * (other**-1 if isinstance(other, Value) else 1 / other)

    def __rtruediv__(self, other):
        return other * self**-1
"""
TANH = """
    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t**2) * out.grad

        out._backward = _backward
        return out
"""
WITH_BACKWARD = ORDER + START + SUM + PRODUCT + BACKWARD
WITH_NUMBERS = ORDER + START + PLAIN_SUM + PLAIN_PRODUCT + BACKWARD
WITH_DIFFERENCES = WITH_NUMBERS + DIFFERENCE
WITH_POWERS = WITH_DIFFERENCES + POWER
WHOLE = "import math\n" + WITH_POWERS + TANH


EXERCISES = (
    Exercise(
        "3.1",
        "A box for a number",
        "Write a class Value that takes a number. It keeps the number as `data`, and has a `grad`, which is 0.0 at "
        "first.",
        Engine(()),
        ("Both are set in __init__.", "self.data = data, and self.grad = 0.0."),
        NUMBER,
        "A number, and room for how much the result moves with it.",
        (
            Mistake("no grad", ("        self.grad = 0.0\n", ""), "The gradient needs a place, too."),
            Mistake("grad 1", ("= 0.0", "= 1.0"), "Only the root begins with 1, and only when asked."),
            Mistake(
                "shared",
                "class Value:\n    data = 0.0\n    grad = 0.0\n\n    def __init__(self, data):\n"
                "        Value.data = data + 0.0\n        Value.grad = data",
                "This belongs to the class, so all Values share it: write self in place of Value.",
            ),
            Mistake(
                "not kept",
                ("self.data = data", "data = data"),
                "`data = data` ends with __init__; self.data stays.",
            ),
        ),
    ),
    Exercise(
        "3.2",
        "Adding",
        "Teach it to add: a + b is a new Value, and a and b stay as they are.",
        Engine(("add",)),
        ("Python calls a.__add__(b) for a + b.", "Return a Value of self.data + other.data."),
        NUMBER + ADDS,
        "A result is a Value again, so it can be an operand of the next one.",
        (
            Mistake(
                "a bare number",
                ("return Value(self.data + other.data)", "return self.data + other.data"),
                "A bare number cannot remember anything: put it into a Value.",
            ),
            Mistake(
                "in place",
                ("return Value(self.data + other.data)", "self.data += other.data\n        return self"),
                "This changes a itself. The sum is a new Value.",
            ),
            Mistake(
                "the box, not the number",
                ("other.data)", "other)"),
                "other is a Value; its number is other.data.",
            ),
            Mistake(
                "not returned",
                ("return Value(self.data", "Value(self.data"),
                "The sum was made and thrown away: return it.",
            ),
        ),
    ),
    Exercise(
        "3.3",
        "Multiplying",
        "Now a * b in the same way.",
        Engine(("add", "mul")),
        ("Python calls a.__mul__(b).", "It is __add__ with another sign."),
        NUMBER + ADDS + MULTIPLIES,
        "With + and * alone every polynomial can be written.",
        (
            Mistake("still a sum", ("self.data * other", "self.data + other"), "The sign inside has stayed a plus."),
            Mistake(
                "a bare number",
                ("return Value(self.data * other.data)", "return self.data * other.data"),
                "Put the product into a Value.",
            ),
            Mistake("a square", ("self.data * other.data", "self.data * self.data"), "This multiplies a with itself."),
        ),
    ),
    Exercise(
        "3.4",
        "Remembering",
        'Let each result remember how it was made: `_prev` is the set of its operands, and `_op` is "+" or "*". A '
        'Value that is made from a number has an empty set and "".',
        Engine(("add", "mul"), remembers=True),
        (
            "Give __init__ two more arguments, with defaults for a number alone.",
            'Value(self.data + other.data, (self, other), "+")',
        ),
        REMEMBERS,
        "Now every result is the root of a graph.",
        (
            Mistake("the same sign", ('"*"', '"+"'), "Copied from the sum: a product has *."),
            Mistake("one operand", ('(self, other), "*"', '(self,), "*"'), "A product has two."),
            Mistake(
                "numbers",
                ('(self, other), "+"', '(self.data, other.data), "+"'),
                "Numbers do not say where they come from. Keep the Values.",
            ),
            Mistake("only the sum", (', (self, other), "*"', ""), "A product remembers, too."),
            Mistake("not stored", ("set(operands)", "set()"), "__init__ takes operands; keep them."),
        ),
    ),
    Exercise(
        "3.5",
        "The way back through a sum",
        "Give each Value a function `_backward`. For a sum, it adds the sum's own gradient to the gradient of each "
        "operand. For a number, it does nothing.",
        Engine(("add",), remembers=True, backward="by hand"),
        (
            "Define a function inside of __add__; it sees self, other and out.",
            "out._backward = _backward, and in __init__: self._backward = lambda: None.",
            "self.grad += out.grad, and the same for other. The += is the important part.",
        ),
        START + SUM,
        "A sum passes its gradient on, unchanged, to both.",
        (
            Mistake(
                "= for +=",
                ("+= out.grad", "= out.grad"),
                "With = the second contribution overwrites the first. Write +=.",
            ),
            Mistake(
                "the root's 1",
                ("+= out.grad", "+= 1.0"),
                "The local derivative of a sum is 1, but it is multiplied by the gradient of the sum.",
            ),
            Mistake(
                "self alone",
                ("            other.grad += out.grad\n", ""),
                "The other operand gets its contribution as well.",
            ),
            Mistake(
                "too early",
                (
                    "        def _backward():\n            self.grad += out.grad\n"
                    "            other.grad += out.grad\n\n        out._backward = _backward\n",
                    "        self.grad += out.grad\n        other.grad += out.grad\n",
                ),
                "This runs during the forward pass, when out.grad is 0 still. Put it into a function for later.",
            ),
            Mistake(
                "numbers forgotten",
                ("        self._backward = lambda: None\n", ""),
                "The walk calls _backward of every Value, also of those that were made from a number.",
            ),
        ),
    ),
    Exercise(
        "3.6",
        "The way back through a product",
        "The same for a product. Try it on a * a, too.",
        Engine(("add", "mul"), remembers=True, backward="by hand"),
        (
            "a * b moves b times as much as a does.",
            "self.grad += other.data * out.grad",
        ),
        START + SUM + PRODUCT,
        "For a * a both lines add to the same gradient, and the sum is 2 * a: the rule for a square came for free.",
        (
            Mistake(
                "= for +=",
                (".grad += self.data", ".grad = self.data"),
                "In a * a the second line wipes out the first. Write +=.",
            ),
            Mistake(
                "its own number",
                START
                + SUM
                + PRODUCT.replace("other.data * out.grad", "self.data_ * out.grad")
                .replace("+= self.data * out", "+= other.data * out")
                .replace("self.data_", "self.data"),
                "Each factor gets the other one times the gradient, not itself.",
            ),
            Mistake(
                "without the chain",
                ("other.data * out.grad", "other.data"),
                "The local derivative alone is not enough: multiply by out.grad.",
            ),
            Mistake(
                "added",
                START + SUM + PRODUCT.replace(".data * out", ".data + out"),
                "Gradient times local derivative, not plus.",
            ),
            Mistake(
                "as a sum",
                START + SUM + PRODUCT.replace("other.data * ", "").replace("self.data * out.g", "out.g"),
                "This is the rule of a sum. A factor gets the other factor.",
            ),
        ),
    ),
    Exercise(
        "3.7",
        "An order",
        "Write order_of(root): a list of all Values that root was computed from, each once, each after its operands, "
        "and root last. Use `_prev`.",
        Order(),
        (
            "Before a Value goes into the list, visit its operands.",
            "A set of those seen already keeps each from going in twice.",
            "A function inside that calls itself does it: visit the operands, then append the node.",
        ),
        ORDER,
        "This is a topological order. Read backwards, it visits each node after all of its users.",
        (
            Mistake(
                "before its operands",
                (
                    "            seen.add(node)\n",
                    "            seen.add(node)\n            order.append(node)\n",
                    "                visit(operand)\n            order.append(node)\n",
                    "                visit(operand)\n",
                ),
                "The node is appended before its operands were visited. Append it after the loop.",
            ),
            Mistake(
                "twice",
                ("        if node not in seen:\n            seen.add(node)\n", "        if True:\n"),
                "A shared Value is reached more than once. Remember those that were seen.",
            ),
            Mistake(
                "level by level",
                "def order_of(root):\n    order = [root]\n    for node in order:\n"
                "        order += [operand for operand in node._prev if operand not in order]\n"
                "    return order[::-1]",
                "Level by level, a Value that is used on two levels comes too late for one of its users.",
            ),
            Mistake(
                "without the root",
                ("    visit(root)\n", "    for operand in root._prev:\n        visit(operand)\n"),
                "root itself belongs into it, last.",
            ),
        ),
    ),
    Exercise(
        "3.8",
        "backward",
        "Put it together: f.backward() sets the gradient of f to 1, and calls each `_backward` in the right order.",
        Engine(("add", "mul"), remembers=True, backward="itself"),
        ("The order is that of 3.7, read from its end.", "for node in reversed(order_of(self)): node._backward()"),
        WITH_BACKWARD,
        "This is backpropagation, all of it. What follows makes it comfortable.",
        (
            Mistake(
                "without the 1",
                ("        self.grad = 1.0\n", ""),
                "The root begins with 1: f moves with f once as much. With 0, nothing but zeros is passed on.",
            ),
            Mistake(
                "forwards",
                ("reversed(order_of(self))", "order_of(self)"),
                "Forwards, each passes its gradient on before it has any.",
            ),
            Mistake(
                "without the root",
                ("reversed(order_of(self))", "reversed(order_of(self)[:-1])"),
                "The root is the first to pass its gradient on.",
            ),
            Mistake(
                "again by every path",
                (
                    "        for node in reversed(order_of(self)):\n            node._backward()\n",
                    "        todo = [self]\n        while todo:\n"
                    "            node = todo.pop()\n            node._backward()\n            todo += node._prev\n",
                ),
                "A shared Value is visited once for every path, and each time passes on all that it has.",
            ),
        ),
    ),
    Exercise(
        "3.9",
        "Plain numbers",
        "Let a + 1, 1 + a, a * 2 and 2 * a work.",
        Engine(("add", "mul"), backward="itself", plain=True),
        (
            "Where other is no Value, make one of it.",
            "For 2 * a Python asks the 2 first, which does not know Values. Then it calls a.__rmul__(2).",
        ),
        WITH_NUMBERS,
        "The r stands for right: the Value is on the right side.",
        (
            Mistake(
                "not on the left",
                ("__radd__", "radd", "__rmul__", "rmul"),
                "Numbers on the left side are missing: __radd__ and __rmul__.",
            ),
            Mistake(
                "the sum alone",
                (WRAPS + "        out = Value(self.data * other", "        out = Value(self.data * other"),
                "A product with a number on its right is missing.",
            ),
            Mistake(
                "rmul adds",
                ("return self * other", "return self + other"),
                "Copied from __radd__: 2 * a is no sum.",
            ),
        ),
    ),
    Exercise(
        "3.10",
        "Minus",
        "Now -a, a - b, a - 1 and 1 - a. There is no need for another `_backward`: write them with + and *.",
        Engine(("add", "mul", "sub", "neg"), backward="itself", plain=True),
        ("-a is a * -1.", "a - b is a + (-1) * b. And 1 - a is (-a) + 1."),
        WITH_DIFFERENCES,
        "What is made of parts that are right is right.",
        (
            Mistake(
                "turned around",
                ("return (-self) + other", "return self + (-1) * other"),
                "__rsub__ is for 1 - a: self is what is subtracted.",
            ),
            Mistake(
                "without a graph",
                ("return self * -1", "return Value(-self.data)"),
                "This Value has forgotten where it comes from, and nothing goes back through it.",
            ),
            Mistake("one side alone", ("__rsub__", "rsub"), "1 - a is missing: __rsub__."),
            Mistake("still a plus", ("self + (-1) * other", "self + other"), "The minus is gone."),
        ),
    ),
    Exercise(
        "3.11",
        "Powers and quotients",
        "Teach it a ** n, where n is a plain number, with its own `_backward`. Then use it for a / b, a / 2 and 1 / "
        "a: a / b is a * b**-1.",
        Engine(("mul", "add", "pow", "div"), backward="itself", plain=True),
        (
            "The derivative of x**n is n * x**(n - 1).",
            "self.grad += n * self.data ** (n - 1) * out.grad",
        ),
        WITH_POWERS,
        "Only powers needed a derivative of their own; division follows.",
        (
            Mistake("no factor", ("+= exponent * self", "+= self"), "The exponent is a factor."),
            Mistake(
                "the exponent stays",
                ("** (exponent - 1)", "** exponent"),
                "The exponent is one less: x**(n - 1).",
            ),
            Mistake("without the chain", ("(exponent - 1) * out.grad", "(exponent - 1)"), "Multiply by out.grad."),
            Mistake(
                "turned around",
                ("return other * self**-1", "return self * other**-1"),
                "1 / a came out as a / 1.",
            ),
            Mistake(
                "= for +=",
                ("self.grad += exponent", "self.grad = exponent"),
                "A base that is used elsewhere as well loses its other contributions. Write +=.",
            ),
        ),
    ),
    Exercise(
        "3.12",
        "A function",
        "Last, a.tanh(), with math.tanh. Its derivative is 1 - t**2, where t is the tanh itself.",
        Engine(("add", "mul", "sub", "tanh"), backward="itself", plain=True),
        ("Keep t: the way back needs it.", "self.grad += (1 - t**2) * out.grad"),
        WHOLE,
        "That is micrograd, built by you. Everything in the chapters to come runs on what you have written here.",
        (
            Mistake(
                "of the input",
                ("1 - t**2", "1 - self.data**2"),
                "It is 1 - t**2, with t the result, not the input.",
            ),
            Mistake("not squared", ("1 - t**2", "1 - t"), "t is squared."),
            Mistake("without the chain", ("(1 - t**2) * out.grad", "(1 - t**2)"), "Multiply by out.grad."),
            Mistake(
                "= for +=",
                ("self.grad += (1", "self.grad = (1"),
                "An operand that is used elsewhere as well loses its other contributions. Write +=.",
            ),
            Mistake(
                "without a graph",
                ('(self,), "tanh"', '(), ""'),
                "The result does not remember its operand, so the walk never gets there.",
            ),
        ),
    ),
)
