"""A page with sliders: moved by keyboard, read aloud, and as wide as a phone."""

import pytest

import micrograd as mg

pytestmark = pytest.mark.slow


def square(size, colour):
    return f'<svg viewBox="0 0 10 10"><rect width="{size}" height="{size}" fill="{colour}"/></svg>'


@pytest.mark.parametrize("width", [360, 1280])
def test_its_sliders_choose_the_picture(show, violations, tmp_path, width):
    path = tmp_path / "squares.html"
    mg.learn.sliders(path, "Squares", square, size=[1, 5, 9.5], colour=["red", "blue"])
    page = show(path, width=width, height=640, bypass_csp=True)
    rectangle = page.locator("#picture rect")

    def seen():
        return rectangle.get_attribute("width"), rectangle.get_attribute("fill")

    assert seen() == ("1", "red")
    page.get_by_role("slider", name="size").focus()
    page.keyboard.press("End")
    assert seen() == ("9.5", "red")
    page.get_by_role("slider", name="colour").press("ArrowRight")
    assert seen() == ("9.5", "blue")
    page.get_by_role("slider", name="size").press("ArrowLeft")
    assert seen() == ("5", "blue")
    assert page.get_by_role("img").get_attribute("aria-label") == "Squares: size 5, colour blue"
    assert page.get_by_role("slider", name="size").get_attribute("aria-valuetext") == "5"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


def test_it_is_light_or_dark_as_the_page_around_it_says(show, tmp_path):
    mg.learn.sliders(tmp_path / "squares.html", "Squares", square, size=[1], colour=["red"])
    page = show(tmp_path / "squares.html")
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "light"
    page.evaluate("postMessage({ theme: 'dark' }, '*')")
    page.wait_for_function(f"{theme} === 'dark'")
    page.evaluate("postMessage({ theme: 'pink' }, '*')")
    page.evaluate("postMessage({ theme: 'light' }, '*')")
    page.wait_for_function(f"{theme} === 'light'")
