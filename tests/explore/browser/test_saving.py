"""Pictures of what is seen, saved from the page: files that stand by themselves."""

import math
import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.draw.text import enclosed
from tests.explore.browser.test_laboratory import small
from tests.explore.browser.test_page import ATTACKS, lecture

pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"


def saved(page, kind):
    """The name and the bytes of the file that a button of the menu gives."""
    if not page.locator("#save").evaluate("save => save.open"):
        page.locator("#save summary").click()
    with page.expect_download() as download:
        page.locator(f"#save-{kind}").click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def picture(page):
    """The SVG that is saved, without saving it: a browser may refuse a second download that soon follows another."""
    return ElementTree.fromstring(page.evaluate("textOfPicture(PICTURES.seen(), find('count').textContent)"))


def texts(picture):
    return [text.text for text in picture.iter(f"{SVG}text") if text.text]


def size_of(png):
    """The width and the height that a PNG's header has."""
    assert png.startswith(b"\x89PNG\r\n")
    return struct.unpack(">II", png[16:24])


def test_an_svg_has_the_numbers_of_the_step_and_all_its_styles(show):
    x, y = Value(2.0, label="x"), Value(-3.0, label="y")
    f = x * y + x
    f.label = "f"
    page = show(f, title="Use x twice: <1>", color_scheme="dark")
    page.keyboard.press("End")
    name, content = saved(page, "svg")
    assert name == "Use-x-twice-1-backward-2-2.svg"
    assert page.locator("#saved").inner_text() == f"Saved as {name}."
    drawing = ElementTree.fromstring(content)
    assert drawing.findtext(f"{SVG}title") == "Use x twice: <1>"
    assert drawing.findtext(f"{SVG}desc") == "backward 2/2"
    assert {"x", "y", "f", "data", "grad", "2", "−3", "−4", "−2"} <= set(texts(drawing))
    assert "x, leaf, data 2, gradient −2" in [title.text for title in drawing.iter(f"{SVG}title")]
    text = content.decode()
    assert not re.search(r" class=| style=|var\(|<style|data-|aria-|https?://(?!www\.w3\.org/2000/svg)", text)
    inks = {element.get("fill") for element in drawing.iter(f"{SVG}text") if element.text}
    assert inks == {"rgb(24, 33, 43)", "rgb(86, 99, 115)", "rgb(255, 255, 255)"}  # dark, and white on the active badge


def test_the_file_opens_by_itself_and_looks_as_the_page_does(show, browser, tmp_path):
    page = show(lecture()[1])
    page.keyboard.press("End")
    widths = "selector => [...document.querySelectorAll(selector)].map((rect) => rect.getBoundingClientRect().width)"
    seen = page.evaluate(widths, "#nodes .frame")
    (tmp_path / "saved.svg").write_bytes(saved(page, "svg")[1])
    alone = page.context.new_page()
    alone.goto((tmp_path / "saved.svg").as_uri())
    told = alone.evaluate(widths, "rect")
    alone.close()
    assert all(any(abs(width - other) < 0.1 for other in told) for width in seen)


def test_only_what_is_in_sight_is_saved(show):
    x = Value(0.5, label="needle")
    page = show(mg.exp(mg.sin(mg.tanh(mg.cos(mg.exp(mg.sin(mg.tanh(mg.cos(x * 2.0)))))))))
    page.evaluate("(view.scale = 4, centre(visible.get(itemOf(root))))")
    drawing = picture(page)
    assert "needle" not in texts(drawing)
    assert float(drawing.get("width")) <= page.locator("#graph").bounding_box()["width"]
    page.locator("#collapse").evaluate("() => fit()")
    drawing = picture(page)
    assert "needle" in texts(drawing)
    shown = page.evaluate("[size.width * view.scale, size.height * view.scale]")
    for side, length in zip(("width", "height"), shown, strict=True):
        assert length - 10 <= float(drawing.get(side)) <= length + 2 * 16 + 1  # no empty room around it
    page.evaluate("(view.x = -1e6, look())")
    page.locator("#save summary").click()
    page.locator("#save-svg").click()
    assert page.locator("#saved").inner_text() == "Nothing was saved: nothing is in sight."


def test_a_png_has_two_pixels_for_each_of_the_screen_and_never_too_many(show):
    page = show(lecture()[1])
    drawing = picture(page)
    name, png = saved(page, "png")
    assert name.endswith("-start.png")
    assert size_of(png) == tuple(math.floor(2 * float(drawing.get(side))) for side in ("width", "height"))
    assert page.locator("#saved").inner_text().endswith(f", {size_of(png)[0]} × {size_of(png)[1]} pixels.")
    page = show(Value(2.0) * 3.0)
    page.evaluate("PICTURES.seen = () => sheet([0, 0, 9000, 9000], '')")  # a screen wider than any
    _, png = saved(page, "png")
    width, height = size_of(png)
    assert 15e6 < width * height <= 16e6
    assert "more would be too many for a browser. An SVG has all details" in page.locator("#saved").inner_text()


def test_labels_are_text_in_the_file_and_run_nothing(show):
    labels = [*ATTACKS, "\ufffe\x00\ud800\x1b", "\u202e"]
    page = show(sum(Value(math.nan, label=label) * math.inf for label in labels), width=2600, height=2000)
    page.keyboard.press("End")
    for label in [enclosed(label) for label in labels]:
        page.evaluate("label => { document.title = label; }", label)
        assert re.fullmatch(r"[^\W_]+(-[^\W_]+)*\.svg", page.evaluate("fileName('step 1', 'svg')"))
        drawing = picture(page)
        assert drawing.findtext(f"{SVG}title").split() == label.split()
    assert {element.tag.removeprefix(SVG) for element in drawing.iter()} <= {
        "svg", "title", "desc", "rect", "defs", "marker", "path", "g", "text", "line", "circle",
    }  # fmt: skip
    assert {"NaN", "!"} <= set(texts(drawing))
    names = {title.text.partition(", leaf")[0] for title in drawing.iter(f"{SVG}title")}
    assert {enclosed(label) for label in labels} <= names
    size_of(saved(page, "png")[1])  # the browser reads it, too


def test_of_a_training_the_network_is_saved_with_its_maps(show):
    page = show(small())
    page.locator(".cell").nth(3).click()
    drawing = picture(page)
    maps = [image.get("href") for image in drawing.iter(f"{SVG}image")]
    assert len(maps) == page.locator(".cell").count()
    assert all(address.startswith("data:image/png;base64,") for address in maps)
    assert len(set(maps)) > 4
    assert texts(drawing) == ["x1", "x2"]
    width, height = size_of(saved(page, "png")[1])
    assert width > 500
    assert height > 300
    page.get_by_role("button", name="One step").click()
    assert "data" in texts(picture(page))


def test_from_the_frame_of_a_notebook(browser):
    page = browser.new_page()
    page.set_content(f"<!doctype html><title>Notebook</title>{mg.explore(Value(2.0) * 3.0)._repr_html_()}")
    frame = page.frame_locator("iframe")
    frame.locator("#save summary").click()
    with page.expect_download() as download:
        frame.locator("#save-png").click()
    assert size_of(Path(download.value.path()).read_bytes())[1] > 100
    page.close()


def test_the_menu_is_opened_and_closed_with_keys_and_by_clicking(show):
    page = show(Value(2.0) * 3.0)
    menu = page.locator("#save > div")
    page.locator("#save summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".svg")
    page.keyboard.press("Escape")
    assert menu.is_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.locator("#save summary").click()
    assert page.locator("#saved").inner_text() == ""
    page.locator("#graph").click(position={"x": 5, "y": 5})
    assert menu.is_hidden()


def test_the_whole_is_saved_with_what_is_out_of_sight_as_it_would_be_seen(show):
    page = show(lecture()[1])
    page.locator("#expand").click()
    page.keyboard.press("End")
    page.evaluate("view.scale = 2; centre(visible.get(itemOf(root)))")
    drawn = page.evaluate("visible.size")
    seen = len(texts(picture(page)))
    name, content = saved(page, "whole")
    assert name.endswith(".svg")
    whole = ElementTree.fromstring(content)
    assert len(texts(whole)) > 5 * seen
    assert len([text for text in texts(whole) if text == "data"]) > drawn / 2
    size = page.evaluate("size")
    assert float(whole.get("width")) >= size["width"] + 32
    assert float(whole.get("height")) >= size["height"] + 32
    numbers = page.evaluate(
        """nodes.filter(({ index, kind }) => visible.has(`n${index}`) && kind !== 'constant')
        .map((node) => readable(node.data))"""
    )
    assert set(numbers) <= set(texts(whole))  # also of what has never been in sight


def test_of_a_training_there_is_no_whole_but_of_its_steps(show):
    page = show(small())
    page.locator("#save summary").click()
    assert not page.locator("#save-whole").is_visible()
    page.get_by_role("button", name="One step").click()
    page.locator("#save summary").click()
    assert page.locator("#save-whole").is_visible()


def test_paper_gets_the_graph_and_the_explanation_whole_and_in_light_colours(show):
    x, y = Value(2.0, label="x"), Value(3.0, label="y")
    page = show(mg.tanh(x * y) + mg.exp(x) * y, color_scheme="dark")
    page.keyboard.press("End")
    seen = [card.bounding_box() for card in page.locator("#nodes .item").all()]
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # as a browser does, which then lays out again
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 600, "height": 800})  # of the paper
    try:
        assert page.evaluate("getComputedStyle(document.querySelector('.leaf .frame')).fill") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for selector in ("footer", "#find", "#theme", "#save", "#tools", "#order button"):
            assert not page.locator(selector).first.is_visible()
        graph = page.locator("#graph").bounding_box()
        assert all(
            graph["x"] <= box["x"] and box["x"] + box["width"] <= graph["x"] + graph["width"]
            for box in (card.bounding_box() for card in page.locator("#nodes .item").all())
        )
        assert page.locator("aside").evaluate("(panel) => panel.scrollHeight <= panel.clientHeight")
        assert page.locator("#node").bounding_box()["y"] >= graph["y"] + graph["height"]
    finally:
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 1280, "height": 800})
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert [card.bounding_box() for card in page.locator("#nodes .item").all()] == seen
