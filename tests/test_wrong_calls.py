"""Wrong calls across the public API: each raises the documented error, names the culprit, and changes nothing."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine.primitive import PRIMITIVES, Primitive

# A call, the error it raises, and what the message says, to begin with or somewhere in it.
WRONG_CALLS = [
    ('mg.numbers(["3"])', TypeError, "an element must be a real number, not str: '3'"),
    ("mg.numbers([None])", TypeError, "an element must be a real number, not NoneType: None"),
    ("mg.numbers([1j])", TypeError, "an element must be a real number, not complex: 1j"),
    ('mg.gradients(["3"])', TypeError, "an element must be a real number, not str: '3'"),
    ('mg.gradients(["a"])', TypeError, "an element must be a real number, not str: 'a'"),
    ('mg.numbers("3")', TypeError, "an element must be a real number, not str: '3'"),
    (
        "mg.softmax([-math.inf, -math.inf])",
        ZeroDivisionError,
        "softmax of nothing but -inf: there is nothing to normalise",
    ),
    ("mg.softmax([])", ValueError, "softmax of nothing: give at least one number or Value"),
    ("mg.softmax(3.0)", TypeError, "softmax takes a sequence of numbers or Values, not float: 3.0"),
    ('mg.softmax(["a"])', TypeError, "an element of what softmax takes must be a number or a Value, not str: 'a'"),
    ('mg.logsumexp("abc")', TypeError, "logsumexp takes a sequence of numbers or Values, not str: 'abc'"),
    ("mg.logsumexp(3)", TypeError, "logsumexp takes a sequence of numbers or Values, not int: 3"),
    ("mg.mean([])", ValueError, "mean of nothing: give at least one number or Value"),
    ("mg.mean(3)", TypeError, "mean takes a sequence of numbers or Values, not int: 3"),
    ('mg.mean(["a", "b"])', TypeError, "an element of what mean takes must be a number or a Value, not str: 'a'"),
    ('mg.mean("ab")', TypeError, "mean takes a sequence of numbers or Values, not str: 'ab'"),
    (
        "mg.mean([[1.0], [2.0]])",
        TypeError,
        "an element of what mean takes must be a number or a Value, not list: [1.0]",
    ),
    ("mg.dot([1], [2, 3])", ValueError, "dot needs two sequences of one length, not of 1 and 2"),
    ('mg.dot("ab", [1, 2])', TypeError, "dot takes two sequences of numbers or Values, not str: 'ab'"),
    ("mg.dot(3, 4)", TypeError, "dot takes two sequences of numbers or Values, not int: 3"),
    ('mg.dot(["a"], [2])', TypeError, "an element of a dot product must be a number or a Value, not str: 'a'"),
    ('v < "3"', TypeError, "'<' not supported between instances of 'Value' and 'str'"),
    ("v < None", TypeError, "'<' not supported between instances of 'Value' and 'NoneType'"),
    ("v < 1j", TypeError, "'<' not supported between instances of 'Value' and 'complex'"),
    ("v + 10**400", OverflowError, "int too large to convert to float: no float is as large as a number given here"),
    (
        "v + Fraction(10**400)",
        OverflowError,
        "integer division result too large for a float: no float is as large as a number given he",
    ),
    ("Value(10**400)", OverflowError, "int too large to convert to float: no float is as large as a number given here"),
    (
        "mg.losses.mean_squared_error([1j], [1.0])",
        TypeError,
        "a prediction must be a number or a Value, not complex: 1j",
    ),
    ('mg.losses.mean_squared_error(["a"], [1.0])', TypeError, "a prediction must be a number or a Value, not str: 'a'"),
    ('mg.losses.mean_squared_error("a", "b")', TypeError, "a target must be a number or a Value, not str: 'b'"),
    (
        "mg.losses.mean_squared_error([1.0], [1.0, 2.0])",
        ValueError,
        "predictions and targets must be of one shape, and not empty: got 1 values and 2 values",
    ),
    (
        "mg.losses.mean_squared_error(1.0, [1.0])",
        ValueError,
        "predictions and targets must be of one shape, and not empty: got one value and 1 values",
    ),
    (
        "mg.losses.mean_squared_error([], [])",
        ValueError,
        "predictions and targets must be of one shape, and not empty: got 0 values and 0 values",
    ),
    ("mg.losses.mean_squared_error(None, None)", TypeError, "a target must be a number or a Value, not NoneType: None"),
    (
        "mg.losses.mean_squared_error([v], [None])",
        TypeError,
        "a target must be a number or a Value, not NoneType: None",
    ),
    ("mg.losses.hinge([1j], [1])", TypeError, "a prediction must be a number or a Value, not complex: 1j"),
    ('mg.losses.hinge(["a"], [1])', TypeError, "a prediction must be a number or a Value, not str: 'a'"),
    ("mg.losses.hinge([1.0], [0])", ValueError, "a target of the hinge loss must be -1 or 1, not 0"),
    (
        "mg.losses.hinge([1.0], [v])",
        ValueError,
        "a target of the hinge loss must be -1 or 1, not Value(data=2.0, grad=0.25, label='v')",
    ),
    ('mg.losses.hinge([1.0], ["a"])', ValueError, "a target of the hinge loss must be -1 or 1, not 'a'"),
    ('mg.losses.binary_cross_entropy("a", 1)', TypeError, "a prediction must be a number or a Value, not str: 'a'"),
    (
        "mg.losses.binary_cross_entropy(1.0, 2)",
        ValueError,
        "a target of the binary cross-entropy must be from 0 to 1, not 2",
    ),
    (
        'mg.losses.binary_cross_entropy(1.0, "a")',
        ValueError,
        "a target of the binary cross-entropy must be from 0 to 1, not 'a'",
    ),
    (
        "mg.losses.binary_cross_entropy(1.0, v)",
        ValueError,
        "a target of the binary cross-entropy must be from 0 to 1, not Value(data=2.0, grad=0.25",
    ),
    (
        "mg.losses.binary_cross_entropy(None, 1)",
        TypeError,
        "a prediction must be a number or a Value, not NoneType: None",
    ),
    ("mg.losses.cross_entropy([1.0, 2.0], 2)", ValueError, "target 2 is not the index of one of 2 classes"),
    ("mg.losses.cross_entropy([1.0, 2.0], -1)", ValueError, "target -1 is not the index of one of 2 classes"),
    (
        "mg.losses.cross_entropy([1.0, 2.0], 1.0)",
        TypeError,
        "a target of the cross-entropy must be an int, the index of a class, not 1.0",
    ),
    (
        "mg.losses.cross_entropy([1.0, 2.0], True)",
        TypeError,
        "a target of the cross-entropy must be an int, the index of a class, not True",
    ),
    (
        'mg.losses.cross_entropy([1.0, 2.0], "a")',
        TypeError,
        "a target of the cross-entropy must be an int, the index of a class, not 'a'",
    ),
    ("mg.losses.cross_entropy(3.0, 0)", TypeError, "logits must be a sequence of numbers or Values, not float: 3.0"),
    ("mg.losses.cross_entropy([], 0)", ValueError, "target 0 is not the index of one of 0 classes"),
    ('mg.losses.cross_entropy(["a", "b"], 0)', TypeError, "a logit must be a number or a Value, not str: 'a'"),
    ('mg.losses.cross_entropy("ab", 0)', TypeError, "logits must be a sequence of numbers or Values, not str: 'ab'"),
    ("mg.losses.cross_entropy([[1.0, 2.0]], [0, 1])", ValueError, "cross_entropy got 1 rows of logits for 2 targets"),
    ("mg.losses.cross_entropy([1.0, 2.0], [0])", ValueError, "cross_entropy got 2 rows of logits for 1 targets"),
    (
        "mg.losses.cross_entropy([1.0, 2.0], [0, 1])",
        TypeError,
        "logits must be a sequence of numbers or Values, not float: 1.0",
    ),
    (
        "mg.losses.cross_entropy([[1.0, 2.0]], 0)",
        TypeError,
        "a logit must be a number or a Value, not list: [1.0, 2.0]",
    ),
    ("mg.optim.Adam([v], betas=(0.9, ))", ValueError, "betas must be two numbers, not 1: (0.9,)"),
    ("mg.optim.Adam([v], betas=0.9)", TypeError, "betas must be two numbers, not float: 0.9"),
    ("mg.optim.Adam([v], betas=(0.9, 0.9, 0.9))", ValueError, "betas must be two numbers, not 3: (0.9, 0.9, 0.9)"),
    ('mg.optim.Adam([v], betas="ab")', TypeError, "betas must be two numbers, not str: 'ab'"),
    ("mg.optim.Adam([v], betas=(0.9, 1.0))", ValueError, "each of the betas must be at least 0 and below 1, not 1.0"),
    ("mg.optim.Adam([v], epsilon=-1)", ValueError, "epsilon must be at least 0 and below inf, not -1"),
    ('mg.optim.Adam([v], epsilon="a")', TypeError, "epsilon must be a real number, not str: 'a'"),
    (
        "mg.optim.SGD(v)",
        TypeError,
        "parameters must be a list of Values or a Module, not Value: Value(data=2.0, grad=0.25, label='v')",
    ),
    ("mg.optim.SGD(3)", TypeError, "parameters must be a list of Values or a Module, not int: 3"),
    ("mg.optim.SGD([])", ValueError, "there are no parameters to optimise"),
    ("mg.optim.SGD([3.0])", TypeError, "a parameter must be a Value, not float: 3.0"),
    ("mg.optim.SGD([v, v])", ValueError, "a parameter is given twice; it would be updated twice a step"),
    (
        "mg.optim.SGD([v*2])",
        ValueError,
        "a parameter must be a leaf, and Value(data=4.0, grad=0.0) is the result of '*'",
    ),
    ("mg.optim.SGD([v], -1)", ValueError, "the learning rate must be at least 0 and below inf, not -1"),
    ('mg.optim.SGD([v], "a")', TypeError, "the learning rate must be a real number, not str: 'a'"),
    ("mg.optim.SGD([v], None)", TypeError, "the learning rate must be a real number, not NoneType: None"),
    ("mg.optim.SGD([v], math.nan)", ValueError, "the learning rate must be at least 0 and below inf, not nan"),
    ("mg.optim.SGD([v], math.inf)", ValueError, "the learning rate must be at least 0 and below inf, not inf"),
    (
        'mg.optim.SGD([v], lambda s: "a").step()',
        TypeError,
        "the learning rate of step 0 must be a real number, not str: 'a'",
    ),
    (
        "mg.optim.SGD([v], lambda s: -1).step()",
        ValueError,
        "the learning rate of step 0 must be at least 0 and below inf, not -1",
    ),
    ("mg.optim.SGD([v], 0.1, momentum=1)", ValueError, "momentum must be at least 0 and below 1, not 1"),
    ('mg.optim.SGD([v], 0.1, momentum="a")', TypeError, "momentum must be a real number, not str: 'a'"),
    (
        "mg.optim.SGD([v], 0.1, nesterov=True)",
        ValueError,
        "nesterov looks ahead along the velocity: give a momentum above 0",
    ),
    ("mg.optim.SGD([v], 0.1, weight_decay=-1)", ValueError, "weight_decay must be at least 0 and below inf, not -1"),
    ("mg.optim.linear(1, 0, 0)", ValueError, "steps must be at least 1, not 0"),
    ('mg.optim.linear(1, 0, "a")', TypeError, "steps must be an int, not str: 'a'"),
    ('mg.optim.linear("a", 0, 3)', TypeError, "start must be a real number, not str: 'a'"),
    ("mg.optim.linear(1, 0, 2.5)", TypeError, "steps must be an int, not float: 2.5"),
    ("mg.optim.cosine(1, 0, 0)", ValueError, "steps must be at least 1, not 0"),
    ("mg.optim.cosine(1, 0, None)", TypeError, "steps must be an int, not NoneType: None"),
    ("mg.optim.cosine(-1, 0, 5)", ValueError, "start must be at least 0 and below inf, not -1"),
    ("mg.optim.warmup(0.1, 0)", ValueError, "steps must be at least 1, not 0"),
    ('mg.optim.warmup("a", 3)', TypeError, "the learning rate must be a real number, not str: 'a'"),
    ('mg.optim.warmup(0.1, "a")', TypeError, "steps must be an int, not str: 'a'"),
    ('mg.optim.constant("a")', TypeError, "the learning rate must be a real number, not str: 'a'"),
    ("mg.optim.constant(-1)", ValueError, "the learning rate must be at least 0 and below inf, not -1"),
    ("mg.fit(lambda x: v*x, [1.0], mg.optim.SGD([v]), epochs=2.0)", TypeError, "epochs must be an int, not float: 2.0"),
    ("mg.fit(lambda x: v*x, [1.0], mg.optim.SGD([v]), epochs=0)", ValueError, "epochs must be at least 1, not 0"),
    (
        "mg.fit(lambda x: v*x, [1.0], mg.optim.SGD([v]), epochs=True)",
        TypeError,
        "epochs must be an int, not bool: True",
    ),
    ("mg.fit(lambda x: v*x, [], mg.optim.SGD([v]))", ValueError, "there is no data to fit"),
    ("mg.fit(lambda x: v*x, 3, mg.optim.SGD([v]))", TypeError, "data must be a list of examples, not int: 3"),
    ("mg.fit(3, [1.0], mg.optim.SGD([v]))", TypeError, "loss must be a function, not int: 3"),
    ("mg.fit(lambda x: v*x, [1.0], 3)", TypeError, "optimizer must be an optimiser, as mg.optim has, not 3"),
    (
        "Value(np.zeros(1, 'm8')[0])",
        TypeError,
        "the data of a Value must be a real number, not timedelta64: np.timedelta64(0)",
    ),
    (
        "Value(np.timedelta64(3, 's'))",
        TypeError,
        "the data of a Value must be a real number, not timedelta64: np.timedelta64(3,'s')",
    ),
    (
        "Value(np.datetime64('2020-01-01'))",
        TypeError,
        "the data of a Value must be a real number, not datetime64: np.datetime64('2020-01-01')",
    ),
    ("pow(v, 2, 3)", TypeError, "Value.pow() takes 2 positional arguments but 3 were given"),
    ("pow(2, v, 3)", TypeError, "unsupported operand type(s) for ** or pow(): 'int', 'Value', 'int'"),
    ("v // '2'", TypeError, "unsupported operand type(s) for //: 'Value' and 'str'"),
    ("v % None", TypeError, "unsupported operand type(s) for %: 'Value' and 'NoneType'"),
    ('v + "a"', TypeError, "unsupported operand type(s) for +: 'Value' and 'str'"),
    ('"a" + v', TypeError, 'can only concatenate str (not "Value") to str'),
    ("v + None", TypeError, "unsupported operand type(s) for +: 'Value' and 'NoneType'"),
    ("None + v", TypeError, "unsupported operand type(s) for +: 'NoneType' and 'Value'"),
    ("v + [1]", TypeError, "unsupported operand type(s) for +: 'Value' and 'list'"),
    ("v * [1, 2]", TypeError, "can't multiply sequence by non-int of type 'Value'"),
    ("v + 1j", TypeError, "unsupported operand type(s) for +: 'Value' and 'complex'"),
    ('v ** "a"', TypeError, "unsupported operand type(s) for ** or pow(): 'Value' and 'str'"),
    ('"a" ** v', TypeError, "unsupported operand type(s) for ** or pow(): 'str' and 'Value'"),
    ("v[0]", TypeError, "'Value' object is not subscriptable"),
    ("round(v, 'a')", TypeError, "'str' object cannot be interpreted as an integer"),
    ("mg.maximum(v)", TypeError, "maximum takes two numbers or more: write maximum(*numbers), not maximum(Value"),
    ("mg.grad(3)", TypeError, "what is differentiated must be a function, not int: 3"),
    ("mg.grad(3)(1.0)", TypeError, "what is differentiated must be a function, not int: 3"),
    (
        'mg.grad(lambda x: x)("a")',
        TypeError,
        "argument 0 must hold numbers in lists, tuples, dicts or arrays, not str: 'a'",
    ),
    (
        "mg.grad(lambda x: x)(None)",
        TypeError,
        "argument 0 must hold numbers in lists, tuples, dicts or arrays, not NoneType: None",
    ),
    ("mg.grad(lambda x: x)()", ValueError, "argnums has 0, but there are 0 arguments"),
    ('mg.grad(lambda x: "a")(1.0)', TypeError, "a function to differentiate must return one number, not str"),
    ("mg.grad(lambda x: [x])(1.0)", TypeError, "a function to differentiate must return one number, not list"),
    ("mg.grad(lambda x: x, argnums=1)(1.0)", ValueError, "argnums has 1, but there are 1 arguments"),
    ('mg.grad(lambda x: x, argnums="a")(1.0)', TypeError, "argnums must be an int or a tuple of ints, not 'a'"),
    ("mg.grad(lambda x: x, argnums=True)(1.0)", TypeError, "argnums must be an int or a tuple of ints, not True"),
    ("mg.grad(lambda x, y: x, argnums=(0, 0))(1.0, 2.0)", ValueError, "argnums (0, 0) has one argument twice"),
    (
        "mg.grad(lambda x: math.exp(x))(1.0)",
        TypeError,
        "the float of a Value has no gradient: use mg.exp, not math.exp, or v.data on purpose",
    ),
    (
        'mg.jacobian(lambda x: "a")(1.0)',
        TypeError,
        "the output of a function to differentiate must hold numbers in lists, tuples, dicts or a",
    ),
    ("mg.jacobian(3)(1.0)", TypeError, "what is differentiated must be a function, not int: 3"),
    ("mg.hessian(lambda x: x, True)", TypeError, "argnums of hessian must be an int, not True"),
    ("mg.hessian(lambda x: x, 2.0)", TypeError, "argnums of hessian must be an int, not 2.0"),
    ("mg.hessian(lambda x: [x])(1.0)", TypeError, "a function to differentiate must return one number, not list"),
    (
        "mg.hvp(lambda p: p[0]*p[0])([1.0], [1.0, 2.0])",
        ValueError,
        "the vector must have the shape of the argument, [1.0], not [1.0, 2.0]",
    ),
    (
        'mg.hvp(lambda p: p[0]*p[0])([1.0], "a")',
        ValueError,
        "the vector must have the shape of the argument, [1.0], not 'a'",
    ),
    (
        'mg.hvp(lambda p: p[0]*p[0])([1.0], {"a":1})',
        ValueError,
        "the vector must have the shape of the argument, [1.0], not {'a': 1}",
    ),
    (
        "mg.value_and_grad(lambda x: None)(1.0)",
        TypeError,
        "a function to differentiate must return one number, not NoneType",
    ),
    ("mg.gradient(3.0, [v])", TypeError, "gradient takes Values, not float: 3.0"),
    ("mg.gradient(v*v, 3.0)", TypeError, "gradient takes Values, not float: 3.0"),
    (
        'mg.gradient(v*v, ["a"])',
        TypeError,
        "the inputs must hold numbers in lists, tuples, dicts or arrays, not str: 'a'",
    ),
    (
        "mg.gradient(v*v, None)",
        TypeError,
        "the inputs must hold numbers in lists, tuples, dicts or arrays, not NoneType: None",
    ),
    ("mg.gradient(None, v)", TypeError, "gradient takes Values, not NoneType: None"),
    ('v.backward("a")', TypeError, "the gradient of a Value must be a real number, not str: 'a'"),
    ("v.backward(None)", TypeError, "the gradient of a Value must be a real number, not NoneType: None"),
    ("v.backward(1j)", TypeError, "the gradient of a Value must be a real number, not complex: 1j"),
    ("v.backward([1.0])", TypeError, "the gradient of a Value must be a real number, not list: [1.0]"),
    (
        "v.backward(v)",
        TypeError,
        "the gradient of a Value must be a real number, not Value: Value(data=2.0, grad=0.25",
    ),
    (
        "Value(1.0, requires_grad=False).backward()",
        ValueError,
        "Value(data=1.0, grad=0.0) requires no gradient: it is a constant, made of constants, or ",
    ),
    ('Value("3")', TypeError, "the data of a Value must be a real number, not str: '3'"),
    ("Value(None)", TypeError, "the data of a Value must be a real number, not NoneType: None"),
    ("Value(1j)", TypeError, "the data of a Value must be a real number, not complex: 1j"),
    ("Value([1])", TypeError, "the data of a Value must be a real number, not list: [1]"),
    ("Value(np.array([1.0]))", TypeError, "the data of a Value must be a real number, not ndarray: array([1.])"),
    ("Value(Value(1))", TypeError, "the data of a Value must be a real number, not Value: Value(data=1.0, grad=0.0)"),
    ('Value(b"3")', TypeError, "the data of a Value must be a real number, not bytes: b'3'"),
    ("Value(1.0, (2.0, ))", TypeError, "a child must be a Value, not float: 2.0"),
    ('Value(1.0, [None], "op")', TypeError, "a child must be a Value, not NoneType: None"),
    ('Value(1.0, 3, "op")', TypeError, "the children of a Value must be a sequence of Values, not 3"),
    ('setattr(v, "data", "a")', TypeError, "the data of a Value must be a real number, not str: 'a'"),
    ('setattr(v, "data", None)', TypeError, "the data of a Value must be a real number, not NoneType: None"),
    (
        'setattr(v*2, "data", 1.0)',
        ValueError,
        "Value(data=4.0, grad=0.0) is the result of '*': set the data of a leaf, and compute it a",
    ),
    ('setattr(v, "grad", "a")', TypeError, "the grad of a Value must be a real number, not str: 'a'"),
    ('setattr(v, "grad", None)', TypeError, "the grad of a Value must be a real number, not NoneType: None"),
    (
        'setattr(v*2, "requires_grad", False)',
        ValueError,
        "Value(data=4.0, grad=0.0) is the result of '*': set requires_grad of its leaves",
    ),
    ('setattr(v*2, "_backward", 3)', TypeError, "_backward must be a function of no arguments, not 3"),
    ('mg.exp("a")', TypeError, "an operand of exp must be a real number, not str: 'a'"),
    ("mg.exp(None)", TypeError, "an operand of exp must be a real number, not NoneType: None"),
    ("mg.exp([1.0])", TypeError, "an operand of exp must be a real number, not list: [1.0]"),
    ("mg.exp(1000.0)", OverflowError, "exp(1000.0): math range error"),
    ("mg.exp(v*1000)", OverflowError, "exp(2000.0): math range error"),
    ("mg.log(0)", ValueError, "log(0.0): math domain error"),
    ("mg.log(v*0)", ValueError, "log(0.0): math domain error"),
    ("mg.sqrt(-1)", ValueError, "sqrt(-1.0): math domain error"),
    ("mg.asin(2)", ValueError, "asin(2.0): math domain error"),
    ('mg.maximum("a", 1)', TypeError, "an operand of maximum must be a real number, not str: 'a'"),
    ("mg.maximum(v, None)", TypeError, "an operand of maximum must be a real number, not NoneType: None"),
    ('mg.where(v>1, "a", 2.0)', TypeError, "an operand of where must be a real number, not str: 'a'"),
    ('mg.where("a", 1.0, 2.0)', TypeError, "an operand of where must be a real number, not str: 'a'"),
    ("mg.where(None, v, 2.0)", TypeError, "an operand of where must be a real number, not NoneType: None"),
    ('mg.leaky_relu("a")', TypeError, "an operand of leaky_relu must be a real number, not str: 'a'"),
    ('mg.leaky_relu(v, "a")', TypeError, "an operand of leaky_relu must be a real number, not str: 'a'"),
    ("mg.elu(v, None)", TypeError, "an operand of elu must be a real number, not NoneType: None"),
    ('mg.detach("a")', TypeError, "an operand of detach must be a real number, not str: 'a'"),
    ('v.maximum("a")', TypeError, "an operand of maximum must be a real number, not str: 'a'"),
    ('v.leaky_relu("a")', TypeError, "an operand of leaky_relu must be a real number, not str: 'a'"),
    ('1/Value(0.0, label="z")', ZeroDivisionError, "1.0"),
    (
        "Value(-8.0)**(1/3)",
        ValueError,
        "-8.0 ** 0.3333333333333333: a negative base with a fractional exponent has no real value",
    ),
    ("mg.topological_order(3)", TypeError, "topological_order takes a Value, not int: 3"),
    ("mg.topological_order(None)", TypeError, "topological_order takes a Value, not NoneType: None"),
    ("mg.draw_dot(3)", TypeError, "a picture is drawn of a Value, not of int: 3"),
    ("mg.trace(3)", TypeError, "a picture is drawn of a Value, not of int: 3"),
    ('mg.save(3, "folder/a.svg")', TypeError, "a picture is drawn of a Value, not of int: 3"),
    (
        'mg.save(v, "folder/a.nope")',
        ValueError,
        "a picture's file must end in one of .svg, .png, .pdf, .dot: 'folder/a.nope'",
    ),
    (
        'mg.save(v, "folder/missing/a.svg")',
        FileNotFoundError,
        "[Errno 2] No such file or directory: 'folder/missing/a.svg'",
    ),
    ('mg.save(v, "folder/a")', ValueError, "a picture's file must end in one of .svg, .png, .pdf, .dot: 'folder/a'"),
    ('mg.array("ab")', TypeError, "the data of a Value must be a real number, not str: 'ab'"),
    ('mg.array([1.0, "a"])', TypeError, "the data of a Value must be a real number, not str: 'a'"),
    ("mg.array([[1.0], [1.0, 2.0]])", ValueError, "the lists are not of one shape: (1,) and (2,) stand side by side"),
    ("mg.array(None)", TypeError, "the data of a Value must be a real number, not NoneType: None"),
    ("mg.array(lambda i: i)", TypeError, "array needs a shape to call a function for"),
    (
        "mg.array([1.0], shape=(1, ))",
        TypeError,
        "shape is for a function of the index; to shape numbers, reshape their array",
    ),
    ('mg.array(lambda i: "a", shape=(2, ))', TypeError, "the data of a Value must be a real number, not str: 'a'"),
    ('mg.array(lambda i: i, shape="a")', TypeError, "'str' object cannot be interpreted as an integer"),
    ("mg.array(lambda i: i, shape=-1)", ValueError, "negative dimensions are not allowed"),
    ("mg.gradients(None)", TypeError, "an element must be a real number, not NoneType: None"),
    ("mg.numbers(None)", TypeError, "an element must be a real number, not NoneType: None"),
    ('mg.primitive(3, "s", math.exp)', TypeError, "the name of a primitive must be a str, not int: 3"),
    (
        'mg.primitive("a b", "s", math.exp)',
        ValueError,
        "the name of a primitive must be a Python identifier, not 'a b'",
    ),
    (
        'mg.primitive("exp", "s", math.exp)',
        ValueError,
        "a primitive named 'exp' is registered already; replace=True takes its place",
    ),
    ('mg.primitive("w1", "s", 3)', TypeError, "primitive w1 needs functions, not int: 3"),
    ('mg.primitive("w2", "s", math.exp, 3)', TypeError, "primitive w2 needs functions, not int: 3"),
    (
        'mg.primitive("w3", "s", math.exp, lambda g, o, x: g, domain=((0, 1), (0, 1)))',
        ValueError,
        "primitive w3 has 1 operands, but 2 domains",
    ),
    ('mg.primitive("w4", 3, math.exp)', TypeError, "the symbol of primitive w4 must be a str, not int: 3"),
    (
        'mg.primitive("w5", "s", math.exp, lambda g, o, x: g, domain=3)',
        TypeError,
        "the domain of primitive w5 must be a tuple of pairs (low, high), not 3",
    ),
    (
        'mg.primitive("w6", "s", math.exp, lambda g, o, x: g, domain=(3, ))',
        TypeError,
        "the domain of primitive w6 must be a tuple of pairs (low, high), not (3,)",
    ),
    ("broken_forward(v)", TypeError, "the output of broken_forward must be a real number, not str: 'a'"),
    (
        "broken_rule(v).backward()",
        TypeError,
        "the derivative of broken_rule(v = 2.0): what a rule of broken_rule gives must be a real number, not str: '",
    ),
    ("no_rule(v).backward()", ValueError, "the derivative of no_rule(v = 2.0): this primitive has no derivative"),
    ('P["mul"](1.0)', TypeError, "mul takes 2 operands, not 1"),
    ('P["mul"](1.0, 2.0, 3.0)', TypeError, "mul takes 2 operands, not 3"),
    ('P["mul"](1.0, "a")', TypeError, "an operand of mul must be a real number, not str: 'a'"),
    (
        'mg.engine.primitive.find("nope")',
        ValueError,
        "no primitive named 'nope' is registered; import the module that defines it",
    ),
    ("mg.operation(3)", TypeError, "operation needs a function, not int: 3"),
    (
        "mg.operation(lambda x: x)(v)",
        TypeError,
        "operation <lambda> must return its value and a backpropagate function, not 2.0",
    ),
    (
        "mg.operation(lambda x: (x, 3))(v)",
        TypeError,
        "operation <lambda> must return its value and a backpropagate function, not (2.0, 3)",
    ),
    (
        "mg.operation(lambda x: (x, lambda g: (g, g)))(v).backward()",
        ValueError,
        "the derivative of <lambda>(v = 2.0): backpropagate gave 2 gradients for 1 operands",
    ),
    (
        'mg.operation(lambda x: (x, lambda g: "a"))(v).backward()',
        TypeError,
        "the derivative of <lambda>(v = 2.0): a gradient must be a real number, not str: 'a'",
    ),
    (
        'mg.operation(lambda x: ("a", lambda g: g))(v)',
        TypeError,
        "the output of <lambda> must be a real number, not str: 'a'",
    ),
    ("mg.nn.Neuron(0)", ValueError, "nin must be at least 1, not 0"),
    ('mg.nn.Neuron("a")', TypeError, "nin must be an int, not str: 'a'"),
    ("mg.nn.Neuron(2.0)", TypeError, "nin must be an int, not float: 2.0"),
    (
        'mg.nn.Neuron(2, activation="nope")',
        ValueError,
        "no activation 'nope'; choose from relu, leaky_relu, elu, silu, gelu, tanh, sigmoid, soft",
    ),
    (
        "mg.nn.Neuron(2, activation=3)",
        ValueError,
        "no activation 3; choose from relu, leaky_relu, elu, silu, gelu, tanh, sigmoid, softplus,",
    ),
    (
        'mg.nn.Neuron(2, initial="nope")',
        ValueError,
        "no initial weights 'nope'; choose from uniform, he, glorot, or give a number",
    ),
    (
        "mg.nn.Neuron(2, initial=-1)",
        ValueError,
        "initial, as a standard deviation, must be finite and not negative, not -1",
    ),
    ("mg.nn.Neuron(2, initial=None)", TypeError, "initial must be a real number, not NoneType: None"),
    ("mg.nn.Layer(2, 0)", ValueError, "nout must be at least 1, not 0"),
    ('mg.nn.Layer(2, "a")', TypeError, "nout must be an int, not str: 'a'"),
    ("mg.nn.Layer(0, 2)", ValueError, "nin must be at least 1, not 0"),
    ("mg.nn.Layer(2, 2)([1.0])", ValueError, "ReLUNeuron(2) takes 2 inputs, not 1"),
    ("mg.nn.MLP(2, [])", ValueError, "nouts is empty: an MLP needs at least one layer"),
    ("mg.nn.MLP(2, [0])", ValueError, "nout must be at least 1, not 0"),
    ('mg.nn.MLP(2, ["a"])', TypeError, "nout must be an int, not str: 'a'"),
    ('mg.nn.MLP(2, "ab")', TypeError, "nouts must be a list of the sizes of the layers, as [2, 1], not str: 'ab'"),
    ('mg.nn.MLP(2, "")', TypeError, "nouts must be a list of the sizes of the layers, as [2, 1], not str: ''"),
    ("mg.nn.MLP(2, 3)", TypeError, "nouts must be a list of the sizes of the layers, as [2, 1], not int: 3"),
    ("mg.nn.MLP(2, 3.0)", TypeError, "nouts must be a list of the sizes of the layers, as [2, 1], not float: 3.0"),
    ("mg.nn.MLP(2, None)", TypeError, "nouts must be a list of the sizes of the layers, as [2, 1], not NoneType: None"),
    ("mg.nn.MLP(2, [[1]])", TypeError, "nout must be an int, not list: [1]"),
    ("mg.nn.MLP(None, [1])", TypeError, "nin must be an int, not NoneType: None"),
    ("mg.nn.MLP(2, [1], activation=[])", ValueError, "no activation []; choose from relu, leaky_relu, elu, silu, "),
    ("mg.nn.Neuron(2, activation={})", ValueError, "no activation {}; choose from relu, leaky_relu, elu, silu, gelu, "),
    ("m([1.0])", ValueError, "LinearNeuron(2) takes 2 inputs, not 1"),
    ("m(3.0)", TypeError, "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not float: 3.0"),
    ("m(None)", TypeError, "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not NoneType: None"),
    ("m(v)", TypeError, "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not Value: Value(data=2.0, "),
    ("m(np.array(3.0))", TypeError, "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not ndarray: array("),
    (
        "m(iter([1.0, 2.0]))",
        TypeError,
        "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not list_iterator",
    ),
    ('m("ab")', TypeError, "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not str: 'ab'"),
    ('m("abc")', TypeError, "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not str: 'abc'"),
    ('m(["a", "b"])', TypeError, "an input of LinearNeuron(2) must be a number or a Value, not str: 'a'"),
    ("m([1.0, None])", TypeError, "an input of LinearNeuron(2) must be a number or a Value, not NoneType: None"),
    ("m([[1.0], [2.0]])", ValueError, "LinearNeuron(2) takes 2 inputs, not 1"),
    ("m([1.0, [2.0]])", TypeError, "an input of LinearNeuron(2) must be a number or a Value, not list: [2.0]"),
    ("m([1j, 2.0])", TypeError, "an input of LinearNeuron(2) must be a number or a Value, not complex: 1j"),
    ('m({"a": 1.0, "b": 2.0})', TypeError, "an input of LinearNeuron(2) must be a number or a Value, not str: 'a'"),
    ('mg.nn.Neuron(2)(["a", "b"])', TypeError, "an input of ReLUNeuron(2) must be a number or a Value, not str: 'a'"),
    ("mg.nn.Layer(2, 3)(3)", TypeError, "ReLUNeuron(2) takes a list of 2 inputs, numbers or Values, not int: 3"),
    ("mg.nn.Neuron(1)(3)", TypeError, "ReLUNeuron(1) takes a list of 1 input, a number or Value, not int: 3"),
    ("mg.no_grad()(m)(3.0)", TypeError, "LinearNeuron(2) takes a list of 2 inputs, numbers or Values, not float: 3.0"),
    ('mg.compile(m)(["a", "b"])', TypeError, "an input of LinearNeuron(2) must be a number or a Value, not str: 'a'"),
    ("mg.take(None, 0)", TypeError, "take takes a sequence of numbers or Values, or of rows, not NoneType: None"),
    ("mg.take(3.0, 0)", TypeError, "take takes a sequence of numbers or Values, or of rows, not float: 3.0"),
    ("mg.take(v, 0)", TypeError, "take takes a sequence of numbers or Values, or of rows, not Value: Value(data=2.0"),
    ("mg.take([1.0, 2.0], 3)", IndexError, "index 3 is out of range for a sequence of 2"),
    ("mg.take([1.0, 2.0], -3)", IndexError, "index -3 is out of range for a sequence of 2"),
    ("mg.take([[1.0, 2.0]], 1)", IndexError, "index 1 is out of range for a sequence of 1"),
    (
        "mg.losses.mean_squared_error([1.0], None)",
        ValueError,
        "predictions and targets must be of one shape, and not empty: got 1 values and NoneType: None",
    ),
    (
        "mg.losses.hinge(iter([1.0]), [1])",
        ValueError,
        "predictions and targets must be of one shape, and not empty: got list_iterator: <list_iterator object at ",
    ),
    (
        "mg.losses.binary_cross_entropy([v], [[1]])",
        ValueError,
        "predictions and targets must be of one shape, and not empty: got one value and 1 values",
    ),
    (
        "mg.fit(lambda x: v * x, [1.0], mg.optim.SGD)",
        TypeError,
        "optimizer must be an optimiser, as mg.optim has, not the class SGD: make one, SGD(model.parameters())",
    ),
    ("mg.optim.SGD(None)", TypeError, "parameters must be a list of Values or a Module, not NoneType: None"),
    (
        "mg.optim.SGD(mg.nn.MLP)",
        TypeError,
        "parameters must be a list of Values or a Module, not the class MLP: make one",
    ),
    ("mg.optim.Adam(m.parameters)", TypeError, "parameters must be a list of Values or a Module, not method: <bound "),
    ("mg.optim.SGD(mg.nn.Module())", ValueError, "there are no parameters to optimise"),
    ("v.item(1)", TypeError, "item() takes 1 positional argument but 2 were given"),
    ('mg.optim.linear(1, 0, 3)("a")', TypeError, "the step of a learning rate must be a real number, not str: 'a'"),
    ("mg.optim.cosine(1, 0, 3)(None)", TypeError, "the step of a learning rate must be a real number, not NoneType"),
    ('mg.optim.warmup(1, 3)("a")', TypeError, "the step of a learning rate must be a real number, not str: 'a'"),
    ("mg.hvp(lambda x: x * x)(1.0, None)", TypeError, "the vector must hold numbers in lists, tuples, dicts or arrays"),
    ("mg.jacobian(lambda x: None)(1.0)", TypeError, "the output of a function to differentiate must hold numbers in "),
    (
        "m.load_state_dict({})",
        ValueError,
        "the state does not fit: 'layers.0.neurons.0.w.0', 'layers.0.neurons.0.w.1', 'laye",
    ),
    (
        'm.load_state_dict({"a":1})',
        ValueError,
        "the state does not fit: 'layers.0.neurons.0.w.0', 'layers.0.neurons.0.w.1', 'laye",
    ),
    ("m.load_state_dict(3)", TypeError, "a state must be a dict of numbers by name, not int: 3"),
    (
        'm.load_state_dict({**m.state_dict(), "layers.0.neurons.0.b":"a"})',
        TypeError,
        "parameter 'layers.0.neurons.0.b' must be a real number, not str: 'a'",
    ),
    (
        'm.load_state_dict({**m.state_dict(), "layers.0.neurons.0.b":math.nan})',
        ValueError,
        "parameter 'layers.0.neurons.0.b' is nan, not a finite number",
    ),
    (
        'm.load_state_dict({**m.state_dict(), "layers.0.neurons.0.b":True})',
        ValueError,
        "parameter 'layers.0.neurons.0.b' is True, not a finite number",
    ),
    ('m.load("folder/nope.json")', FileNotFoundError, "[Errno 2] No such file or directory: 'folder/nope.json'"),
    ('m.load("folder")', IsADirectoryError, "[Errno 21] Is a directory: 'folder'"),
    ('m.save("folder/nope/x.json")', FileNotFoundError, "[Errno 2] No such file or directory: 'folder/nope/x.json'"),
    ('m.save("folder")', IsADirectoryError, "[Errno 21] Is a directory: 'folder'"),
    ("mg.optim.Optimizer([v], 0.1).step()", TypeError, "Optimizer does not say how to update a parameter"),
    (
        "mg.no_grad(3)",
        TypeError,
        "no_grad takes no arguments; to decorate a function write @no_grad(), with parentheses",
    ),
    (
        "mg.detect_anomaly(3)",
        TypeError,
        "detect_anomaly takes no arguments; to decorate a function write @detect_anomaly(), with ",
    ),
    ('max(v, "a")', TypeError, "'>' not supported between instances of 'str' and 'Value'"),
    ('sum([v, "a"])', TypeError, "unsupported operand type(s) for +: 'Value' and 'str'"),
    ("v.exp(1)", TypeError, "Value.exp() takes 1 positional argument but 2 were given"),
]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """What the calls are made on: Values, a model, an optimiser, primitives with faults, and a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    v, w = Value(2.0, label="v"), Value(3.0)
    v.grad, w.grad = 0.25, -1.0
    model = mg.nn.MLP(2, [1], initial=0.5)
    return {
        "mg": mg,
        "np": np,
        "math": math,
        "Fraction": Fraction,
        "Value": Value,
        "P": PRIMITIVES,
        "v": v,
        "w": w,
        "m": model,
        "optimizer": mg.optim.SGD([v, w], momentum=0.5),
        "broken_forward": Primitive("broken_forward", "s", lambda x: "a", lambda g, out, x: g),
        "broken_rule": mg.primitive("broken_rule", "s", lambda x: x, lambda g, out, x: "a", replace=True),
        "no_rule": Primitive("no_rule", "s", lambda x: x),
    }


def state(world):
    """All that a call could have changed."""
    values = [(x.data, x.grad, x.label, x.requires_grad, x.is_leaf) for x in (world["v"], world["w"])]
    return (
        values,
        world["m"].state_dict(),
        [parameter.grad for parameter in world["m"].parameters()],
        repr(world["optimizer"]),
        list(PRIMITIVES),
        sorted(os.walk(".")),
        (world["v"] * 2).requires_grad,
    )


@pytest.mark.parametrize(("call", "error", "words"), WRONG_CALLS, ids=[call for call, _, _ in WRONG_CALLS])
def test_a_wrong_call_is_refused_by_name_and_changes_nothing(call, error, words, world):
    before = state(world)
    with pytest.raises(error) as raised:
        exec(call, world)
    assert raised.type is error
    assert words in str(raised.value)
    assert state(world) == before


def test_there_are_many_of_them():
    assert len({call for call, _, _ in WRONG_CALLS}) >= 150


def test_calls_that_only_look_wrong():
    x = Value(2.0)
    assert x < Fraction(10**400)
    assert x > -Fraction(10**400)
    assert Fraction(10**400) >= x
    (x**3).backward(create_graph=True)
    x.grad *= 0.5
    assert (float(x.grad), mg.gradient(x.grad, x)) == (6.0, 6.0)
    x.grad = 0.0
    with pytest.raises(TypeError, match="the grad of a Value must be a real number, not Value"):
        x.grad = Value(1.0)
    history = mg.fit(lambda y: x * y, [1.0, 2.0], mg.optim.SGD([x]), epochs=np.int64(3), batch_size=np.int8(2))
    assert len(history.steps) == 3
