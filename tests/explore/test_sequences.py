"""What pages know of programs that read tokens: found in the graph, however the program was written."""

import itertools
import math
import runpy

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.pages import laboratory
from micrograd.pages import recording as recordings
from micrograd.pages.passes import passes
from micrograd.pages.recording import of_recording
from micrograd.pages.totals import total_of
from tests.explore.reader import ALPHABET, Plain, Reader
from tests.folders import DEMOS

pytestmark = pytest.mark.slow


def sequence_of(root, classes=()):
    data, nodes = passes(root, classes=classes)
    return data["sequence"], nodes


@pytest.fixture(scope="module")
def names():
    """The loss of a word of the demo, what its page knows of it, and its Values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DEMOS))
        model = runpy.run_path(str(DEMOS / "names.py"))["Transformer"](5, 4)
    return model, *sequence_of(model.loss([0, 2, 2, 1, 0]), ALPHABET)


@pytest.mark.unmeasured
def test_tokens_are_the_rows_that_were_taken(names):
    model, sequence, nodes = names
    assert sequence["table"] == "letter"
    assert [token["row"] for token in sequence["tokens"]] == [0, 2, 2, 1]
    assert [[nodes[value] for value in row] for row in sequence["rows"]] == model.letter  # all, also those not taken


def test_each_head_says_who_reads_whom_and_its_shares_are_those_of_the_softmax(names):
    _, sequence, nodes = names
    heads = sequence["heads"]
    assert [(head["head"], head["from"]) for head in heads] == [(head, at) for at in range(4) for head in range(4)]
    for head in heads:
        assert head["to"] == list(range(head["from"] + 1))
        assert sum(nodes[share].data for share in head["weights"]) == pytest.approx(1)


def test_predictions_have_their_scores_in_the_order_of_the_classes_and_the_right_class(names):
    _, sequence, nodes = names
    assert [(each["position"], each["target"]) for each in sequence["predictions"]] == [(0, 2), (1, 2), (2, 1), (3, 0)]
    for each in sequence["predictions"]:
        scores = [nodes[score].data for score in each["scores"]]
        assert nodes[each["result"]].data == pytest.approx(mg.losses.cross_entropy(scores, each["target"]))


def test_blocks_stand_in_the_order_of_the_program(names):
    _, sequence, _ = names
    blocks = ["embedding", "queries, keys, values", *(f"head {number}" for number in range(1, 5)), "attention", "MLP"]
    assert [block["name"] for block in sequence["blocks"]] == [*blocks, "logits", "loss"]
    assert sequence["cells"] == [[block, position] for position in range(4) for block in range(10)]
    beyond = min(sequence["rows"][3])  # rows that are not taken come after what the graph has
    assert sum(count for _, count in sequence["cell_of"]) == beyond


@pytest.mark.unmeasured
def test_a_program_with_other_names_and_its_own_softmax_is_read_too():
    reader = Reader()
    sequence, nodes = sequence_of(reader.loss([0, 3, 1, 0]), ALPHABET)
    assert sequence["table"] == "glyphs.rows"
    assert [token["row"] for token in sequence["tokens"]] == [0, 3, 1]
    assert [(head["layer"], head["head"], head["from"], head["to"]) for head in sequence["heads"]] == [
        (layer, part, place, list(range(place + 1))) for layer in range(2) for place in range(3) for part in range(2)
    ]
    inside = ["queries, keys, values", "head 1", "head 2", "attention", "MLP"]
    layers = [f"{name}, layer {layer}" for layer in (1, 2) for name in inside]
    assert [block["name"] for block in sequence["blocks"]] == ["embedding", *layers, "logits", "loss"]
    assert [each["target"] for each in sequence["predictions"]] == [3, 1, 0]
    for each in sequence["predictions"]:
        shares = mg.softmax([nodes[score].data for score in each["scores"]])
        assert nodes[each["result"]].data == pytest.approx(-math.log(shares[each["target"]]))


@pytest.mark.parametrize("letters", [[3, 1, 2], [0, 1, 2, 3, 4], [1, 1, 2]], ids=str)
def test_without_places_norms_and_residual_connections_masks_still_say_who_reads_whom(letters):
    sequence, _ = sequence_of(Plain().loss([*letters, 0]))
    assert sequence["table"] == "signs"
    assert [token["row"] for token in sequence["tokens"]] == letters
    assert [(head["from"], head["to"]) for head in sequence["heads"]] == [
        (place, list(range(place + 1))) for place in range(len(letters))
    ]
    names = ["queries, keys, values", "head 1", "attention", "MLP", "logits", "loss"]
    assert [block["name"] for block in sequence["blocks"]] == names


SCORES = [Value(1.0), Value(3.0), Value(2.0)]


@mg.scope
def surprise():
    return mg.logsumexp(SCORES) - SCORES[0]


PREDICTIONS = {
    "cross_entropy": (mg.losses.cross_entropy(SCORES, 2), 2),
    "-log(softmax)": (-mg.log(mg.softmax(SCORES)[1]), 1),
    "log(softmax)": (mg.log(mg.softmax(SCORES)[1]), 1),
    "logsumexp - score": (mg.logsumexp(SCORES) - SCORES[0], 0),
    "the same in a scope": (surprise(), 0),
    "-(score - logsumexp)": (-(SCORES[0] - mg.logsumexp(SCORES)), 0),
    "softmax": (mg.softmax(SCORES)[1], None),
}


@pytest.mark.parametrize("form", PREDICTIONS)
def test_a_prediction_is_found_in_each_form(form):
    root, target = PREDICTIONS[form]
    sequence, nodes = sequence_of(root, ["cat", "dog", "cow"])
    assert sequence["classes"] == ["cat", "dog", "cow"]
    assert "tokens" not in sequence
    (prediction,) = sequence["predictions"]
    assert prediction["position"] is None
    assert prediction["target"] == target
    assert [nodes[score] for score in prediction["scores"]] == SCORES


X = Value(0.5)
NOTHING = {
    "no softmax": X * X,
    "a sigmoid": 1 / (1 + mg.exp(-X)),
    "a sigmoid as weight": X * (1 / (1 + mg.exp(-X))),
    "a difference of exponentials": mg.exp(X) - mg.exp(-X),
    "a logarithm of a sum": mg.log(mg.exp(X) + mg.exp(2 * X)),
    "one of exponentials": mg.log(mg.exp(X)) - X,
    "a plain share": mg.exp(X) / mg.exp(X) + 1,
}


@pytest.mark.parametrize("what", NOTHING)
def test_what_is_no_softmax_of_several_classes_is_no_prediction(what):
    assert sequence_of(NOTHING[what])[0] is None
    with pytest.raises(ValueError, match="no softmax that becomes a prediction"):
        passes(NOTHING[what], classes=["cat", "dog"])


def test_a_softmax_whose_weights_do_not_meet_is_no_attention():
    weights = mg.softmax([SCORES[0], SCORES[1]])
    apart = mg.tanh(weights[0] * SCORES[2]) + weights[1] * SCORES[2]
    loss = mg.losses.cross_entropy([apart, SCORES[0]], 0)
    sequence, _ = sequence_of(loss)
    assert [prediction["target"] for prediction in sequence["predictions"]] == [None, 0]
    alone = weights[0] * SCORES[2] + weights[1]
    assert len(sequence_of(mg.losses.cross_entropy([alone, SCORES[0]], 0))[0]["predictions"]) == 2


class Odd(mg.nn.Module):
    """Matrices that are not used as weights are, nor as tables."""

    def __init__(self):
        self.unused, self.part, self.uneven = ([[Value(0.1), Value(0.2)]] * 2 for _ in range(3))

    def __call__(self, x):
        return [mg.exp(x * self.part[0][0]), self.uneven[0][0] + x, self.uneven[0][0] + self.uneven[0][1]]


def test_matrices_of_which_no_whole_row_is_taken_are_no_tables():
    assert "tokens" not in sequence_of(mg.losses.cross_entropy(Odd()(Value(1.0)), 0))[0]


class OverTime(mg.nn.Module):
    """A token decides with which weights what is measured is added up: who reads whom is not known."""

    def __init__(self):
        self.table = [[Value(0.1), Value(0.2)], [Value(0.3), Value(0.4)]]

    def __call__(self, token, measured):
        a, b = [x + 1 for x in self.table[token]]
        shares = mg.softmax(measured)
        return [a * mg.dot(shares, measured), b]


def test_attention_to_what_comes_from_no_token_has_no_map():
    sequence, _ = sequence_of(mg.losses.cross_entropy(OverTime()(1, SCORES), 0))
    assert [token["row"] for token in sequence["tokens"]] == [1]
    assert sequence["heads"] == []
    assert [block["name"] for block in sequence["blocks"]] == ["embedding", "logits", "loss"]


A, B, C = (Value(number) * 1.0 for number in (1.0, 2.0, 3.0))
TOTALS = {
    "a sum": (A + B + C, True),
    "a mean": (mg.mean([A, B, C]), True),
    "a mean by its share": ((A + B + C) * (1 / 3), True),
    "a sum from a start": (Value(0.0) + A + B + C, True),
    "divided by something else": ((A + B + C) / 4.0, False),
    "divided by what is computed": ((A + B + C) / A, False),
    "one twice": (A + A + B + C, False),
    "one missing": (A + B, False),
    "one changed": (A + mg.tanh(B) + C, False),
}


@pytest.mark.parametrize("what", TOTALS)
def test_a_total_of_losses_is_known(what):
    root, is_known = TOTALS[what]
    assert (total_of(root, [A, B, C]) is not None) is is_known


@pytest.mark.unmeasured
def test_a_table_that_is_not_trained_is_one_too():
    reader = Reader()
    for value in itertools.chain(*reader.glyphs.rows):
        value.requires_grad = False
    data, nodes = passes(reader.loss([0, 3, 1, 0]), classes=ALPHABET)
    rows = data["sequence"]["rows"]
    assert [[nodes[number] for number in row] for row in rows] == reader.glyphs.rows
    assert all(data["nodes"][number]["folded"] is not None for number in rows[4])  # it is drawn nowhere


class TestARecording:
    def recorded(self, words, spelt=list):
        reader = Reader(layers=1)
        recording = mg.Recording(reader)
        rows = [spelt([0, *map(ALPHABET.index, word), 0]) for word in words]
        mg.fit(lambda row: reader.loss(list(row)), rows, mg.optim.Adam(reader.parameters(), 0.01), record=recording)
        return recording

    def test_shows_the_longest_example_that_is_not_too_large(self, monkeypatch):
        recording = self.recorded(["ab", "cab", "b"])
        assert [token["row"] for token in of_recording(recording, classes=ALPHABET)["sequence"]["tokens"]] == [
            0,
            3,
            1,
            2,
        ]
        monkeypatch.setattr(laboratory, "MOST_OF_EXAMPLE", 1500)
        assert [token["row"] for token in of_recording(recording, classes=ALPHABET)["sequence"]["tokens"]] == [0, 2]

    def test_of_examples_without_a_length_shows_the_first(self):
        recording = self.recorded(["ab", "cab"], bytes)
        assert len(of_recording(recording)["sequence"]["tokens"]) == 3

    def test_plays_the_parameters_of_each_moment_and_does_not_train(self):
        recording = self.recorded(["ab", "cab"])
        shown = of_recording(recording)["recording"]
        assert "each length has a graph of its own" in shown["training"]["reason"]
        assert shown["network"] is None
        assert shown["states"] == []
        assert [frame["step"] for frame in shown["frames"]] == [0, 1, 2]

    @pytest.mark.unmeasured
    def test_of_a_large_program_has_fewer_moments(self, monkeypatch):
        monkeypatch.setattr(recordings, "MOST_NUMBERS_OF_TOKENS", 600)
        assert [frame["step"] for frame in of_recording(self.recorded(["ab", "cab"]))["recording"]["frames"]] == [0, 2]

    def test_of_no_inputs_and_no_loss_has_nothing_to_show(self):
        recording = mg.Recording(Reader())
        recording.step(1.0)
        with pytest.raises(ValueError, match="there are no inputs, and the loss function was not recorded"):
            mg.explore(recording)

    def test_needs_inputs_where_there_are_to_be_some(self):
        with pytest.raises(ValueError, match="there are no inputs to show"):
            mg.Recording(Reader(), [])


SIGNS = [[Value(0.1 * row - 0.2 * column) for column in range(4)] for row in range(5)]


def test_a_table_of_plain_lists_is_found_by_the_names_that_a_scope_uses():
    counts = {"a": 3}
    weights, numbers = np.array([[Value(0.3 * row) for _ in range(4)] for row in range(5)]), np.zeros((2, 2))

    @mg.scope
    def scores_after(letter):
        assert numbers.size + counts["a"] == 7
        scores = [mg.dot(row, SIGNS[letter]) for row in weights]
        return scores if letter else [score * later for score in scores]

    letters = [3, 1]
    loss = mg.losses.cross_entropy([scores_after(letter) for letter in letters], [1, 0])
    sequence, nodes = sequence_of(loss, ALPHABET)
    assert sequence["table"] == "SIGNS"
    assert [token["row"] for token in sequence["tokens"]] == letters
    assert [[nodes[value] for value in row] for row in sequence["rows"]] == SIGNS
    later = Value(2.0)
    data, nodes = passes(loss + mg.losses.cross_entropy(scores_after(0), 1))
    paths = {node: card["path"] for node, card in zip(nodes, data["nodes"], strict=True)}
    assert (paths[weights[4, 1]], paths[SIGNS[3][0]], paths[later]) == ("weights[4][1]", "SIGNS[3][0]", "")


class TestTheTokensToShowFirst:
    def word(self, root, tokens, classes=ALPHABET):
        return passes(root, classes=classes, tokens=tokens)[0]["sequence"]["word"]

    @pytest.mark.unmeasured
    def test_are_named_or_numbered_and_stand_between_the_marks(self):
        loss = Reader().loss([0, 3, 1, 2, 0])
        assert self.word(loss, "ab")["first"] == [0, 1, 2, 0]
        assert self.word(loss, ["d"])["first"] == [0, 4, 0]
        assert self.word(loss, [0, 2], ())["first"] == [0, 2]  # of numbers, none is a mark
        assert self.word(loss, "")["first"] is None

    @pytest.mark.unmeasured
    def test_of_a_program_that_does_not_read_itself_have_no_mark_at_the_end(self):
        right = mg.losses.cross_entropy(Reader()([4, 0, 1]), [2, 2, 2])
        word = self.word(right, ["c", "b"], [*"abcd", "."])
        assert (word["reads"], word["before"], word["after"], word["first"]) == (False, 1, 0, [4, 2, 1])

    @pytest.mark.parametrize(
        ("loss", "classes", "tokens", "message"),
        [
            (lambda: Reader().loss([0, 3, 1, 0]), ALPHABET, "ax", "'x' is none of the 5 that this program knows"),
            (lambda: Reader().loss([0, 3, 1, 0]), ALPHABET, "aaa", "room for 2 of them, not for 3"),
            (lambda: Reader(sees_all=True).loss([0, 3, 1, 0]), ALPHABET, "a", "only words of 2 have this graph"),
            (lambda: Reader().loss([0, 3, 1, 0]) * 2.0, ALPHABET, "a", "only words of 2 have this graph"),
            (lambda: mg.losses.cross_entropy([Value(1.0), Value(2.0)], 1), None, "a", "this graph has none"),
            (lambda: Value(2.0) * 3, None, "a", "this graph has none"),
        ],
        ids=["another name", "too many", "later ones are read", "another sum", "no table", "no prediction"],
    )
    def test_that_cannot_be_read_are_refused(self, loss, classes, tokens, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            mg.explore(loss(), tmp_path / "page.html", classes=classes, tokens=tokens)

    def test_are_refused_where_a_page_cannot_compute(self, own_registry):
        double = mg.primitive("double", "double", lambda x: math.ldexp(x, 1), lambda g, out, x: g * 2)
        with pytest.raises(ValueError, match="a page cannot compute double"):
            self.word(double(Reader().loss([0, 3, 1, 0])), "ab")

    def test_are_strings_or_numbers_of_a_value(self, tmp_path):
        with pytest.raises(TypeError, match=r"a token is a string or a number, not float: 1\.5"):
            mg.explore(Reader().loss([0, 3, 0]), tmp_path / "page.html", tokens=[1.5])
        recording = mg.Recording(mg.nn.MLP(1, [1]), [[1.0]])
        with pytest.raises(TypeError, match="that of a Recording shows its longest example"):
            mg.explore(recording, tmp_path / "page.html", tokens="a")
