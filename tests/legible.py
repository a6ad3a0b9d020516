"""What cannot be read on a page: letters that are too small, what is cut off, numbers that do not fit their boxes.

With MICROGRAD_SCREENSHOTS=FOLDER in the environment, the tests of pages leave pictures of them there.
"""

import os

LAPTOP, PHONE, SMALL_PHONE = (
    {"width": 1280, "height": 800},
    {"width": 390, "height": 844},
    {"width": 360, "height": 740},
)
SIZES = {"laptop": LAPTOP, "phone": PHONE, "small phone": SMALL_PHONE}

# Letters of graphs have 8 pixels at least, and those of words 11.
FAULTS = """() => {
  const isSeen = (element) => // one pixel is for screen readers
    element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 1;
  const found = [];
  const say = (what, element) =>
    found.push(`${what}: ${(element.getAttribute("aria-label") ?? element.textContent).trim().slice(0, 60)}`);
  for (const text of document.querySelectorAll("svg text")) {
    if (!isSeen(text) || !text.textContent.trim()) continue;
    const { a, b } = text.getScreenCTM();
    const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
    if (size < 7.99) say(`${size.toFixed(2)} px in a graph`, text);
  }
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const parents = new Set();
  for (let node; (node = words.nextNode()); ) if (node.data.trim()) parents.add(node.parentElement);
  for (const parent of parents) {
    if (parent.closest("svg, script, style, noscript, template, [aria-hidden=true]") || !isSeen(parent)) continue;
    const size = parseFloat(getComputedStyle(parent).fontSize);
    if (size < 11) say(`${size.toFixed(2)} px of prose`, parent);
  }
  const width = document.documentElement.scrollWidth;
  if (width > innerWidth) found.push(`the page is ${width} px wide`);
  for (const item of document.querySelectorAll("#graph .item")) {
    const frame = item.querySelector(".frame")?.getBoundingClientRect();
    for (const text of item.querySelectorAll(":scope > text, :scope > g:not(.flag, .turn) > text")) {
      const { left, right } = text.getBoundingClientRect();
      if (!frame || !isSeen(text)) continue;
      if (left < frame.left - 1 || right > frame.right + 1) say(`${text.textContent} is wider than its box`, item);
    }
  }
  for (const text of document.querySelectorAll(".cell .says"))
    if (text.scrollWidth > text.clientWidth) say("wider than its cell", text);
  return found;
}"""

CUT = """() => {
  const graph = document.getElementById("graph");
  const frame = graph.getBoundingClientRect();
  const isCut = (item) => {
    const { left, top, right, bottom, width } = item.getBoundingClientRect();
    const over = Math.max(frame.left - left, right - frame.right, frame.top - top, bottom - frame.bottom);
    return width > 0 && over > 2;
  };
  const items = graph.checkVisibility() ? [...graph.querySelectorAll(".item")] : [];
  return items.filter(isCut).map((item) => `cut off: ${item.getAttribute("aria-label")}`);
}"""


def photograph(page, name, **options):
    """Leave a picture of a page where the environment asks for it."""
    if folder := os.environ.get("MICROGRAD_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", **options)


def faults(page):
    """What cannot be read on a page as it is shown now."""
    return page.evaluate(FAULTS)


def faults_of_graph(page, name=""):
    """What cannot be read of the page of a graph: at first, in the middle of the backward pass, and with all open.

    Nothing of the graph may be out of sight, but once all of it was opened.

    Args:
        page: that is shown.
        name: of its pictures.

    Returns:
        The faults, each with when there were any.
    """
    found = []

    def look(when, is_whole):
        said = faults(page) + (page.evaluate(CUT) if is_whole else [])
        found.extend(f"{when}, {fault}" for fault in said)
        photograph(page, f"{name} {when}".replace(" ", "-"))

    look("at first", True)
    page.evaluate("go(Math.floor(0.75 * steps.length))")
    look("in the backward pass", True)
    if page.evaluate("!find('expand').hidden && !find('expand').disabled"):
        page.evaluate("find('expand').click()")
        look("with all open", False)
        assert page.evaluate("[...document.querySelectorAll('#graph text')].length") > 0
    return found
