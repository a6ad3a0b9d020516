"""Samples: what the program does with each result of the same part of it, up to where the results come together.

A network that runs on four samples, with a loss of each, is four boxes of a network and its loss, which then make one
stack. Where the boxes feed each other, as those of a transformer that reads letter by letter, they are steps; and
inside of a function, as the heads of attention, branches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.draw.folding.boxes import Box, Contents, alike

if TYPE_CHECKING:
    from micrograd.draw.folding.boxes import Item
    from micrograd.engine.value import Value


def put_into_samples(nodes: list[Value], of: dict[Value, Box | None]) -> None:
    """Put boxes of the same part of the program, with what is done to the result of each alone, into a box for each.

    Args:
        nodes: the Values, each after its operands.
        of: the box of each; the boxes of samples are added.
    """
    contents = Contents(nodes, of)
    for around, items in contents.items.items():
        taken: set[Item] = set()
        for boxes in alike(items):
            if len(boxes) > 1 and taken.isdisjoint(boxes):
                samples = _Samples(boxes, around, items, contents)
                samples.grow()
                taken.update(item for sample in samples.samples for item in sample)
                samples.put(of)


class _Samples:
    """Boxes of the same part of the program, and what is done to each of them alone."""

    def __init__(self, boxes: list[Box], around: Box | None, items: dict[Item, None], contents: Contents) -> None:
        self.boxes, self.around, self.feeds = sorted(boxes, key=lambda box: box.start), around, contents.feeds
        self.samples: list[dict[Item, None]] = [{box: None} for box in self.boxes]
        self.fed_by: dict[Item, list[Item]] = {item: [] for item in items}
        for item in items:
            for user in self.feeds.get(item, ()):
                self.fed_by[user].append(item)

    def grow(self) -> None:
        """Take what all samples have done to them in the same way, as long as there is something."""
        last: list[list[Item]] = [[box] for box in self.boxes]  # what was taken last
        while all(last):
            found = [self._uses(sample, items) for sample, items in zip(self.samples, last, strict=True)]
            first = found[0]
            shared = [kind for kind in first if all(len(each.get(kind, ())) == len(first[kind]) for each in found)]
            last = [[item for kind in shared for item in each[kind]] for each in found]
            for sample, items in zip(self.samples, last, strict=True):
                sample.update(dict.fromkeys(items))

    def _uses(self, sample: dict[Item, None], items: list[Item]) -> dict[Any, list[Item]]:
        """What uses these items of a sample, and beside the sample only what is given: by what it is."""
        found: dict[Any, list[Item]] = {}
        for user in dict.fromkeys(user for item in items for user in self.feeds.get(item, ())):
            if user not in sample and all(each in sample or _is_given(each) for each in self.fed_by[user]):
                found.setdefault(user.key if isinstance(user, Box) else user._primitive.name, []).append(user)
        return found

    def put(self, of: dict[Value, Box | None]) -> None:
        """Put each sample that has grown into a box, with the leaves that only it uses."""
        if len(self.samples[0]) == 1:
            return
        number_of = {item: number for number, sample in enumerate(self.samples) for item in sample}
        is_chain = any(
            number_of.get(user, number) != number
            for item, number in number_of.items()
            for user in self.feeds.get(item, ())
        )
        name = (
            "Step" if is_chain else "Sample" if self.around is None else "Branch"
        )  # in a function, it is of one sample
        for number, (first, sample) in enumerate(zip(self.boxes, self.samples, strict=True), 1):
            box = Box(f"{name} {number}", "run", self.around, first.start, ("sample", first.key))
            own = [item for user in sample for item in self.fed_by[user] if _is_given(item)]
            leaves = [leaf for leaf in own if all(user in sample for user in self.feeds[leaf])]
            for item in [*sample, *leaves]:
                if isinstance(item, Box):
                    item.parent = box
                    if item.name.rstrip("0123456789") == "Network ":
                        item.name = "Network"  # this sample has one
                else:
                    of[item] = box


def _is_given(item: Item) -> bool:
    return item.kind == "parameters" if isinstance(item, Box) else item.is_leaf
