"""The windows of these tests hear what they are there to hear: a silent test is silent because nothing was said."""

import pytest

from tests.browser.window import Window

pytestmark = pytest.mark.browser


def test_a_window_hears_the_console_errors_dialogs_and_breaches_of_the_policy(window: Window) -> None:
    window.go("/glossary")
    assert window.complaints() == []
    window.page.evaluate("console.log('a word')")
    window.page.evaluate("alert('a dialog')")
    window.page.evaluate("setTimeout(() => { throw new Error('a fault') })")
    inserted = """<img src=x:y onerror=alert(1)><p style="color: red">a</p><iframe src=/></iframe>"""
    window.page.evaluate("(html) => document.body.insertAdjacentHTML('beforeend', html)", inserted)
    window.page.evaluate("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.PWN = 1' }))")
    window.page.wait_for_timeout(200)
    heard = "\n".join(window.complaints())
    for words in ("a word", "a dialog", "a fault", "CSP style-src-attr", "CSP script-src-elem", "CSP frame-src"):
        assert words in heard
    assert window.page.evaluate("window.PWN") is None
    window.allow("")
