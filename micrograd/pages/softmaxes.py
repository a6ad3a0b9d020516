"""Softmaxes in a graph, found by what they compute, whatever code wrote them: heads of attention, and predictions.

A softmax is numbers that are divided by one total, the sum of their exponentials. Where each of its weights multiplies
a row of other numbers, and the products are added up, it is a head of attention:

    mixed[c] = weight[0] * rows[0][c] + weight[1] * rows[1][c] + ...

Where a weight, or a score less the logarithm of the total, becomes a loss, it is a prediction: cross_entropy is one,
and so is -log(softmax(scores)[target]).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from micrograd.contexts.calls import calls_of
from micrograd.engine.order import computed_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from micrograd.engine.value import Value


@dataclass(frozen=True, eq=False)
class Head:
    """What one head of attention does at one position.

    Attributes:
        scores: what goes into the softmax; None for one that is a plain number, as where a mask hides a position.
        weights: what comes out, as many.
        rows: for each weight the numbers that it multiplies.
        mixed: the sums of the products.
        core: all Values from the scores, without them, to the sums.
    """

    scores: list[Value | None]
    weights: list[Value]
    rows: list[list[Value]]
    mixed: list[Value]
    core: frozenset[Value]


@dataclass(frozen=True, eq=False)
class Prediction:
    """A softmax over classes.

    Attributes:
        scores: one for each class.
        target: the right class; None where the program has none.
        result: the loss, or the first weight where there is no target.
        core: the Values from the scores, without them, to the result.
    """

    scores: list[Value]
    target: int | None
    result: Value
    core: frozenset[Value]


@dataclass
class Softmaxes:
    """Those of a graph, in the order of the program."""

    heads: list[Head] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)


def softmaxes(nodes: Sequence[Value], users: Mapping[Value, Sequence[Value]]) -> Softmaxes:
    """Find the softmaxes of a graph.

    Args:
        nodes: the Values, each after its operands.
        users: of each, what uses it.

    Example:
        >>> import micrograd as mg
        >>> loss = mg.losses.cross_entropy([mg.Value(1.0), mg.Value(2.0)], 1)
        >>> nodes = mg.topological_order(loss)
        >>> users = {node: [user for user in nodes if node in user._operands()] for node in nodes}
        >>> softmaxes(nodes, users).predictions[0].target
        1
    """
    found = Softmaxes()
    rank = {node: index for index, node in enumerate(nodes)}
    for node in nodes:
        exponentials = _exponentials(node)
        if not exponentials or _is_part_of_a_total(node, users):
            continue
        weights = [user for user in users[node] if user._primitive.name == "div" and user._operands()[1] is node]
        if weights:
            is_whole = _is_whole(node, weights)
            if is_whole and (head := _head(weights, users, rank)):
                found.heads.append(head)
            elif prediction := _of_weights(weights, exponentials, users):
                found.predictions.append(prediction)
        elif prediction := _of_logarithm(node, exponentials, users, rank):
            found.predictions.append(prediction)
    return found


def _terms(node: Value) -> list[Value]:
    """What a chain of additions adds up, in its order."""
    terms, stack = [], [node]
    while stack:
        term = stack.pop()
        if term._primitive.name == "add":
            stack += term._operands()[::-1]
        else:
            terms.append(term)
    return terms


def _exponentials(node: Value) -> list[Value]:
    """The exponentials that a Value is the sum of; none where it is something else."""
    if node._primitive.name not in ("add", "exp"):
        return []
    if node._primitive.name == "add" and node._operands()[1]._primitive.name not in ("add", "exp", "constant", "leaf"):
        return []  # most additions: this saves going through all that they add
    terms = _terms(node)
    exponentials = [term for term in terms if term._primitive.name == "exp"]
    return exponentials if all(term._primitive.name == "exp" or _is_number(term) for term in terms) else []


def _is_whole(total: Value, weights: list[Value]) -> bool:
    """Whether each term of a total has its weight: 1 / (1 + exp(-x)) is no softmax."""
    terms, parts = _terms(total), [weight._operands()[0] for weight in weights]
    return len(terms) == len(parts) and {term for term in terms if not _is_number(term)} <= set(parts)


def _is_number(node: Value) -> bool:
    return node.is_leaf and not node.requires_grad


def _is_part_of_a_total(node: Value, users: Mapping[Value, Sequence[Value]]) -> bool:
    """Whether something goes on adding to it: then it is not the total."""
    return any(user._primitive.name == "add" and _exponentials(user) for user in users[node])


def _score(exponential: Value) -> Value | None:
    """What is in an exponential, without the number that is taken off lest it overflow; None for a plain number."""
    if exponential._primitive.name != "exp":
        return None
    (inside,) = exponential._operands()
    if inside._primitive.name == "sub" and not inside._operands()[1].requires_grad:
        return inside._operands()[0]
    return inside


def _core(results: Iterable[Value], stop: Iterable[Value]) -> frozenset[Value]:
    """What lies between these results, which are part of it, and where it stops."""
    return frozenset(computed_from(results, set(stop)))


def _head(weights: list[Value], users: Mapping[Value, Sequence[Value]], rank: Mapping[Value, int]) -> Head | None:
    """The head whose weights these are; None where they do not multiply rows that are then added up."""
    weights = sorted(weights, key=rank.__getitem__)
    products = [
        sorted((user for user in users[weight] if user._primitive.name == "mul"), key=rank.__getitem__)
        for weight in weights
    ]
    if not products[0] or len({len(each) for each in products}) > 1:
        return None
    owner = {product: place for place, each in enumerate(products) for product in each}
    rows: list[list[Value]] = [[] for _ in weights]
    mixed = []
    for product in products[0]:
        if (total := _sum_of_all(product, owner, len(weights), users)) is None:
            return None
        mixed.append(total)
        for term in _terms(total):
            if term in owner:
                place = owner[term]
                first, second = term._operands()
                rows[place].append(second if first is weights[place] else first)
    scores = [_score(weight._operands()[0]) for weight in weights]
    stop = {score for score in scores if score is not None} | {value for row in rows for value in row}
    return Head(scores, weights, rows, mixed, _core(mixed, stop))


def _sum_of_all(
    product: Value, owner: Mapping[Value, int], count: int, users: Mapping[Value, Sequence[Value]]
) -> Value | None:
    """The sum that a product of a weight goes into, with one product of each weight."""
    total = product
    while len({owner[term] for term in _terms(total) if term in owner}) < count:
        sums = [user for user in users[total] if user._primitive.name == "add"]
        if len(sums) != 1:
            return None
        total = sums[0]
    return total


def _of_weights(
    weights: list[Value], exponentials: list[Value], users: Mapping[Value, Sequence[Value]]
) -> Prediction | None:
    """The prediction of a softmax, with the class whose weight goes into a logarithm as its target."""
    scores = [score for each in exponentials if (score := _score(each)) is not None]
    place = {exponential: index for index, exponential in enumerate(exponentials)}
    of = [(weight, place[weight._operands()[0]]) for weight in weights if weight._operands()[0] in place]
    if len(scores) < 2 or not of:
        return None
    for weight, target in of:
        for user in users[weight]:
            if user._primitive.name == "log":
                result = next((after for after in users[user] if after._primitive.name == "neg"), user)
                return Prediction(scores, target, result, _core([result, *weights], scores))
    return Prediction(scores, None, weights[0], _core(weights, scores))


THROUGH = ("where", "log", "add")  # from the total of exponentials to its logarithm, with what was taken off


def _of_logarithm(
    total: Value,
    exponentials: list[Value],
    users: Mapping[Value, Sequence[Value]],
    rank: Mapping[Value, int],
) -> Prediction | None:
    """The prediction that is the logarithm of a total less a score, or the reverse."""
    scores = [score for each in exponentials if (score := _score(each)) is not None]
    node, way = total, set[str]()
    while following := [user for user in users[node] if user._primitive.name in THROUGH]:
        node = following[-1]
        way.add(node._primitive.name)
    for user in users[node]:
        if user._primitive.name != "sub" or "log" not in way:
            continue
        first, second = user._operands()
        score = second if first is node else first
        if len(classes := {*scores, score}) < 2:
            continue
        result = next((after for after in users[user] if after._primitive.name in ("softplus", "neg")), user)
        ordered = _in_order(classes, result, rank)
        return Prediction(ordered, ordered.index(score), result, _core([result], classes))
    return None


def _in_order(classes: set[Value], result: Value, rank: Mapping[Value, int]) -> list[Value]:
    """The scores in the order of the classes: that in which cross_entropy was given them, else that of the program."""
    for call in calls_of(result):
        place = {number: index for index, number in enumerate(call.inputs)}
        if all(id(score) in place for score in classes):
            return sorted(classes, key=lambda score: place[id(score)])
    return sorted(classes, key=rank.__getitem__)
