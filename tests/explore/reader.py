"""Programs that read letters, written in other ways than demos/names.py, and with other names."""

import random

import micrograd as mg

ALPHABET = list(".abcd")


class Reader(mg.nn.Module):
    """Two layers of attention, one after the other for all letters, with products and a softmax of its own."""

    def __init__(self, count=5, width=6, parts=2, layers=2, room=6, sees_all=False):
        random.seed(1)
        self.sees_all = sees_all
        self.glyphs, self.spots = mg.nn.Embedding(count, width), table(room, width)
        self.parts = parts
        self.floors = [
            {name: table(width, width) for name in ("ask", "have", "give", "join")}
            | {"up": table(2 * width, width), "down": table(width, 2 * width)}
            for _ in range(layers)
        ]
        self.norms = [[mg.nn.LayerNorm(width), mg.nn.LayerNorm(width)] for _ in range(layers)]
        self.last = table(count, width)

    def __call__(self, letters):
        xs = [added(self.glyphs(letter), self.spots[place]) for place, letter in enumerate(letters)]
        for floor, (first, second) in zip(self.floors, self.norms, strict=True):
            xs = [added(x, y) for x, y in zip(xs, self.look_around([first(x) for x in xs], floor), strict=True)]
            xs = [added(x, product(floor["down"], list(map(mg.tanh, product(floor["up"], second(x)))))) for x in xs]
        return [product(self.last, x) for x in xs]

    def look_around(self, xs, floor):
        asks, haves, gives = ([product(floor[name], x) for x in xs] for name in ("ask", "have", "give"))
        size = len(xs[0]) // self.parts
        found = []
        for place, ask in enumerate(asks):
            taken = []
            for start in range(0, len(ask), size):
                part = slice(start, start + size)
                seen = range(len(asks) if self.sees_all else place + 1)
                weights = portions([product([haves[at][part]], ask[part])[0] * size**-0.5 for at in seen])
                taken += [product([weights], [gives[at][part][column] for at in seen])[0] for column in range(size)]
            found.append(product(floor["join"], taken))
        return found

    def loss(self, letters):
        rows = self(letters[:-1])
        losses = [-mg.log(portions(row)[right]) for row, right in zip(rows, letters[1:], strict=True)]
        return sum(losses, mg.Value(0.0)) * (1 / len(losses))


class Plain(mg.nn.Module):
    """One head without residual connections, norms and places, which a mask keeps from what comes later."""

    def __init__(self, count=5, width=4):
        random.seed(2)
        self.signs = table(count, width)
        self.query, self.key, self.value, self.narrow = (table(width, width) for _ in range(4))
        self.out = table(count, width)

    def __call__(self, letters):
        turns = [self.turn(letter) for letter in letters]
        return [self.answer(query, turns[: place + 1], len(letters)) for place, (query, _, _) in enumerate(turns)]

    @mg.scope
    def turn(self, letter):
        x = mg.take(self.signs, letter)
        return product(self.query, x), product(self.key, x), product(self.value, x)

    def answer(self, query, seen, count):
        scores = [mg.dot(query, key) for _, key, _ in seen] + [-1e9] * (count - len(seen))
        values = [value for _, _, value in seen] + [[0.0] * len(query)] * (count - len(seen))
        shares = mg.softmax(scores)
        mixed = [mg.dot(shares, column) for column in zip(*values, strict=True)]
        return product(self.out, list(map(mg.relu, product(self.narrow, mixed))))

    def loss(self, letters):
        return mg.losses.cross_entropy(self(letters[:-1]), letters[1:])


def table(rows, columns):
    return [[mg.Value(random.gauss(0, 0.5)) for _ in range(columns)] for _ in range(rows)]


def added(xs, ys):
    return [x + y for x, y in zip(xs, ys, strict=True)]


def product(rows, x):
    return [sum(w * v for w, v in zip(row, x, strict=True)) for row in rows]


def portions(scores):
    powers = [mg.exp(score) for score in scores]
    whole = sum(powers[1:], powers[0])
    return [power / whole for power in powers]
