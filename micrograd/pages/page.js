"use strict";
// The page has one graph and one number that says which step it is at. Everything shown follows from the two:
// draw() puts the visible items in place, refresh() puts the step's numbers, colours and words in.

const passes = globalThis.unpacked ?? JSON.parse(document.getElementById("data").textContent);
const { nodes, groups, primitives, root } = passes;
const themed = document.documentElement; // it has the colours
const find = (id) => document.getElementById(id);
const SMOOTH = 3000; // items at a time
const FEW = 300; // items, up to which those out of sight are kept, for screen readers to go through
const OPEN_UNASKED = 120; // items that are shown at first, at most

