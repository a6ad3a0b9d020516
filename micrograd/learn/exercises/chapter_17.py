"""Chapter 17, Tokens: byte pair encoding, and what a network sees of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Choice, Number

if TYPE_CHECKING:
    import random

    Merges = list[tuple[int, int, int]]

MOST_FREQUENT = """
def most_frequent(words):
    counts = {}
    for word in words:
        for pair in zip(word, word[1:]):
            counts[pair] = counts.get(pair, 0) + 1
    return list(max(counts, key=counts.get))
"""
MERGE = """
def merge(word, a, b, new):
    found, place = [], 0
    while place < len(word):
        if word[place : place + 2] == [a, b]:
            found.append(new)
            place += 2
        else:
            found.append(word[place])
            place += 1
    return found
"""
ENCODE = f"""{MERGE}

def encode(word, merges):
    for a, b, new in merges:
        word = merge(word, a, b, new)
    return word
"""
DECODE = """
def decode(tokens, merges):
    parts = {new: (a, b) for a, b, new in merges}
    found, waiting = [], list(tokens)[::-1]
    while waiting:
        token = waiting.pop()
        if token in parts:
            waiting += parts[token][::-1]
        else:
            found.append(token)
    return found
"""
PER_LETTER = """
def per_letter(losses, lengths):
    return sum(losses) / sum(lengths)
"""


def _word(source: random.Random, least: int, most: int) -> list[int]:
    return [source.randint(1, 3) for _ in range(source.randint(least, most))]


def _words(source: random.Random) -> tuple[list[list[int]]]:
    return ([_word(source, 2, 6) for _ in range(source.randint(1, 4))],)


def _pair(source: random.Random) -> tuple[list[int], int, int, int]:
    return _word(source, 3, 9), source.randint(1, 2), source.randint(1, 2), 9


def _merges(source: random.Random) -> Merges:
    """Merges of what is there already, also of tokens that were merged before."""
    found: Merges = []
    for new in range(4, 4 + source.randint(1, 4)):
        found.append((source.randint(1, new - 1), source.randint(1, new - 1), new))
    return found


def _encoded(source: random.Random) -> tuple[list[int], Merges]:
    return _word(source, 4, 10), _merges(source)


def _decoded(source: random.Random) -> tuple[list[int], Merges]:
    merges = _merges(source)
    return [source.randint(1, 3 + len(merges)) for _ in range(source.randint(1, 5))], merges


def _losses(source: random.Random) -> tuple[list[float], list[int]]:
    count = source.randint(2, 6)
    return [round(source.uniform(0.1, 6), 2) for _ in range(count)], source.choices([1, 2, 3, 4], k=count)


EXERCISES = (
    Exercise(
        "17.1",
        "The most frequent pair",
        "Write most_frequent(words): each word is a list of numbers. Count each two neighbours in all words, and "
        "return the most frequent pair, as a list of two. Of equally frequent pairs, return the first one.",
        Same(
            [
                ([[1, 2, 1, 2], [2, 1, 2]],),
                ([[3, 1]],),
                ([[2, 1], [1, 2], [1, 2]],),
                ([[3, 2], [2, 3], [1, 1]],),
                ([[1, 2, 3], [3, 3, 1], [2, 3, 1]],),
                ([[1, 1, 2], [3, 2], [3, 2]],),
                ([[2, 2, 3, 2, 2], [3, 2]],),
            ],
            draw=_words,
        ),
        (
            "zip(word, word[1:]) gives all pairs of neighbours. A dict can count them.",
            "max(counts, key=counts.get) is the first of the keys with the largest count, in the order in which they "
            "came.",
        ),
        MOST_FREQUENT,
        "The whole method is this question, asked again and again.",
        (
            Mistake(
                "the count",
                ("list(max(counts, key=counts.get))", "max(counts.values())"),
                "That is how often it comes. Which pair is it?",
            ),
            Mistake(
                "the largest pair",
                ("max(counts, key=counts.get)", "max(counts)"),
                "This compares the pairs themselves. Compare their counts: key=counts.get.",
            ),
            Mistake(
                "over the edge",
                "def most_frequent(words):\n    counts = {}\n    text = sum(words, [])\n"
                "    for pair in zip(text, text[1:]):\n        counts[pair] = counts.get(pair, 0) + 1\n"
                "    return list(max(counts, key=counts.get))",
                "The end of one word and the beginning of the next are no neighbours.",
            ),
            Mistake(
                "without order",
                ("zip(word, word[1:])", "map(tuple, map(sorted, zip(word, word[1:])))"),
                "[1, 2] and [2, 1] are two pairs: the order counts.",
            ),
            Mistake(
                "the last of the best",
                ("max(counts, key=counts.get)", "max(reversed(counts), key=counts.get)"),
                "Of pairs that come equally often, the one that is met first is asked for.",
            ),
            Mistake(
                "once for each word",
                ("in zip(word, word[1:])", "in dict.fromkeys(zip(word, word[1:]))"),
                "A pair may come twice in a word: count it twice.",
            ),
        ),
    ),
    Exercise(
        "17.2",
        "Two become one",
        "Write merge(word, a, b, new): the word, in which each a that is followed by b is replaced by new, together "
        "with that b. Go from left to right, and do not look at a merged number again.",
        Same(
            [
                ([1, 2, 3], 1, 2, 9),
                ([1, 1, 1], 1, 1, 9),
                ([2, 1], 1, 2, 9),
                ([3, 1, 2, 1, 2], 1, 2, 9),
                ([1], 1, 1, 9),
                ([1, 1, 2], 1, 2, 9),
                ([1, 1, 1, 1, 2], 1, 1, 9),
            ],
            draw=_pair,
        ),
        (
            "After a merge, go on two places farther; else one.",
            "A while loop with a place is simpler than a for loop: place += 2, or place += 1.",
            "word[place : place + 2] == [a, b] is also right at the last place, where there is no pair.",
        ),
        MERGE,
        "The word becomes shorter with each pair, and the alphabet longer by one.",
        (
            Mistake(
                "the second one stays",
                ("place += 2", "place += 1"),
                "The new number stands for both, so both are gone. Go on behind them.",
            ),
            Mistake(
                "once only",
                "def merge(word, a, b, new):\n    for place in range(len(word) - 1):\n"
                "        if word[place : place + 2] == [a, b]:\n"
                "            return word[:place] + [new] + word[place + 2 :]\n    return word",
                "The pair may come several times: merge each of them.",
            ),
            Mistake(
                "in any order",
                ("word[place : place + 2] == [a, b]", "sorted(word[place : place + 2]) == sorted([a, b])"),
                "b followed by a is another pair.",
            ),
            Mistake(
                "the end is lost",
                ("while place < len(word)", "while place < len(word) - 1"),
                "The last number may belong to no pair. It stays all the same.",
            ),
            Mistake(
                "from the right",
                "def merge(word, a, b, new):\n    found, place = [], len(word) - 1\n    while place >= 0:\n"
                "        if place and word[place - 1 : place + 1] == [a, b]:\n            found.append(new)\n"
                "            place -= 2\n        else:\n            found.append(word[place])\n"
                "            place -= 1\n    return found[::-1]",
                "Of three equal numbers in a row, the first two are the pair: go from left to right.",
            ),
        ),
    ),
    Exercise(
        "17.3",
        "How long?",
        "You have done ten merges. How many letters can the longest token have, at most?",
        Number(),
        (
            "The first merge joins two letters. What can the second one join?",
            "Two tokens of the longest kind: each merge can double the length.",
        ),
        "2**10",
        "Among the names of this chapter, christ took five merges: ch, ri, st, rist, and then all of it.",
        (
            Mistake("one letter more each", "11", "A merge joins two tokens, and both may be long already."),
            Mistake("two letters each", "20", "A merge joins two tokens, and both may be long already."),
            Mistake("one too few", "2**9", "The first merge makes 2 of 1, and the tenth 1024 of 512."),
            Mistake("a pair", "2", "That is the first merge. The next one can join two such pairs."),
            Mistake("squared", "100", "Each merge can double the longest token. What is ten times doubled?"),
        ),
    ),
    Exercise(
        "17.4",
        "A new word",
        "Write encode(word, merges): merges is a list of (a, b, new), in the order in which they were learned. Apply "
        "each of them to the whole word, one after the other.",
        Same(
            [
                ([1, 2, 3], [(1, 2, 4), (4, 3, 5)]),
                ([1, 2, 3], [(2, 3, 4), (1, 2, 5)]),
                ([1, 1, 1], [(1, 1, 4)]),
                ([3, 2, 1], [(1, 2, 4)]),
                ([1, 2, 1, 2], [(1, 2, 4), (4, 4, 5)]),
                ([1, 2, 1, 2, 3], [(2, 1, 4), (1, 2, 5), (5, 3, 6)]),
            ],
            draw=_encoded,
        ),
        ("This is exercise 17.2, for each of the merges in turn.", "word = merge(word, a, b, new), for each merge."),
        ENCODE,
        "The order is part of the tokens: whoever changes it cuts the same word in another way.",
        (
            Mistake(
                "the last first",
                ("in merges:", "in merges[::-1]:"),
                "Later merges are of what earlier ones have made: begin with the first.",
            ),
            Mistake(
                "the first merge alone",
                ("in merges:", "in merges[:1]:"),
                "Apply all merges, one after the other.",
            ),
            Mistake(
                "place by place",
                "def encode(word, merges):\n    parts, found = {(a, b): new for a, b, new in merges}, []\n"
                "    for token in word:\n        found.append(token)\n"
                "        while len(found) > 1 and tuple(found[-2:]) in parts:\n"
                "            found[-2:] = [parts[tuple(found[-2:])]]\n    return found",
                "This goes through the word, and takes what it meets first. Go through the merges: an earlier merge "
                "comes first, wherever its pair is.",
            ),
            Mistake(
                "once each",
                "def encode(word, merges):\n    word = list(word)\n    for a, b, new in merges:\n"
                "        for place in range(len(word) - 1):\n            if word[place : place + 2] == [a, b]:\n"
                "                word[place : place + 2] = [new]\n                break\n    return word",
                "A pair may come several times in a word: merge each of them.",
            ),
            Mistake(
                "the second one stays",
                ("place += 2", "place += 1"),
                "The new number stands for both, so go on behind them.",
            ),
        ),
    ),
    Exercise(
        "17.5",
        "And back",
        "Write decode(tokens, merges): the letters that these tokens stand for. A token that no merge has made is a "
        "letter.",
        Same(
            [
                ([4, 3], [(1, 2, 4)]),
                ([5], [(1, 2, 4), (4, 3, 5)]),
                ([2, 1], []),
                ([6], [(1, 2, 4), (3, 4, 5), (5, 5, 6)]),
                ([1, 4, 4], [(2, 2, 4)]),
            ],
            draw=_decoded,
        ),
        (
            "A merge (a, b, new) says that new stands for a and b. These may be tokens themselves.",
            "Undo the merges, the last one first: replace each new by a and b.",
        ),
        DECODE,
        "Each token has one reading, so nothing is lost, in any text.",
        (
            Mistake(
                "one step",
                "def decode(tokens, merges):\n    parts = {new: (a, b) for a, b, new in merges}\n"
                "    return [t for token in tokens for t in parts.get(token, (token,))]",
                "The parts of a token may be tokens themselves. Go on until only letters are left.",
            ),
            Mistake(
                "turned round",
                ("parts[token][::-1]", "parts[token]"),
                "a comes before b. Here they come out the other way round.",
            ),
            Mistake(
                "tokens as they are",
                "def decode(tokens, merges):\n    return tokens",
                "Numbers that a merge has made are no letters.",
            ),
            Mistake(
                "the text turned round",
                ("list(tokens)[::-1]", "list(tokens)"),
                "This reads the tokens from the end. The first one comes first.",
            ),
        ),
    ),
    Exercise(
        "17.6",
        "A fair comparison",
        "Write per_letter(losses, lengths): losses has the loss of each token of a text, and lengths the number of "
        "its letters. Return the loss per letter, which can be compared between any two ways to cut the text.",
        Same(
            [([3.0, 2.0], [3, 1]), ([2.0], [4]), ([1.0, 2.0, 6.0], [1, 2, 4]), ([2.0, 2.0], [1, 1])],
            draw=_losses,
        ),
        (
            "The chance of the whole text is the product of the chances, so its loss is the sum of the losses.",
            "That is the same text, however it is cut. Divide by how many letters it has.",
        ),
        PER_LETTER,
        "Large networks are compared by the loss for each byte, for the same reason.",
        (
            Mistake(
                "for each token",
                ("sum(lengths)", "len(losses)"),
                "This is the loss for each token. Longer tokens are harder to guess, and there are fewer of them.",
            ),
            Mistake(
                "the mean of ratios",
                "def per_letter(losses, lengths):\n"
                "    return sum(loss / length for loss, length in zip(losses, lengths)) / len(losses)",
                "So a token of one letter counts as much as one of four. Add up first, then divide.",
            ),
            Mistake("the whole text", (" / sum(lengths)", ""), "Divide by how many letters it has."),
            Mistake(
                "multiplied",
                "def per_letter(losses, lengths):\n"
                "    return sum(loss * length for loss, length in zip(losses, lengths)) / sum(lengths)",
                "The loss of a token is that of all its letters together. Do not count it for each of them.",
            ),
            Mistake(
                "upside down",
                "def per_letter(losses, lengths):\n    return sum(lengths) / sum(losses)",
                "Loss for each letter: the loss is above the line.",
            ),
        ),
    ),
    Exercise(
        "17.7",
        "How many r?",
        "People laughed at large networks that could not say how often strawberry contains an r. To the network, the "
        'word is a few tokens. What is the reason? "it never sees the letters", "it has too few weights", "it cannot '
        'count", or "the word is too rare".',
        Choice("it never sees the letters", "it has too few weights", "it cannot count", "the word is too rare"),
        (
            "What does the network get in place of the word? Where are the letters in it?",
            "Some rows of an embedding. Could you tell from the number 4,711 how many r it has?",
        ),
        '"it never sees the letters"',
        "It can learn the spelling of a token only from texts that spell it out.",
        (
            Mistake(
                "larger is better", '"it has too few weights"', "No number of weights helps to see what is not there."
            ),
            Mistake(
                "counting",
                '"it cannot count"',
                "Ask it to write the letters one by one first, and it counts them. What has changed?",
            ),
            Mistake(
                "rare",
                '"the word is too rare"',
                "It is so frequent that its pieces are tokens. That is the trouble with it.",
            ),
        ),
    ),
)
