"""The checker of pages finds what it is there to find: one fault of each kind, and none in a sound page."""

import pytest

from tests.pages.markup import faults

SOUND = '<html lang="en"><head><title>A page</title></head><body><main><h1>A finding</h1>{}</main></body></html>'


def test_a_sound_page_has_no_fault() -> None:
    assert faults(SOUND.format('<label><span>Prompt</span><input name="prompt"></label><p id="a">words</p><a href="#a">a</a>')) == []


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        ("<p>never closed", "</main> where <p> is open"),
        ("<p><div></div></p>", "<div> inside <p>"),
        ("</b>", "</b> where <main> is open"),
        ("<h1>another</h1>", "2 h1"),
        ("<h3>a level left out</h3>", "h1 is followed by h3"),
        ('<i id="x"></i><i id="x"></i>', "ids twice: ['x']"),
        ('<i class="x" class="y"></i>', "<i> has an attribute twice"),
        ('<input name="prompt">', '<input name="prompt"> has no label'),
        ("<label>words<input></label>", "<input> has no name"),
        ("<a href='/'></a>", '<a href="/"> has no words'),
        ("<button>go</button>", "<button> has no type"),
        ("<img src='/a.png'>", '<img src="/a.png"> has no alt'),
        ("<svg></svg>", "<svg> is neither hidden nor named"),
        ("<table><tr><td>1</td></tr></table>", "<table> has no header cell"),
        ("<table><tr><th>n</th></tr></table>", "a header cell “n” without scope"),
        ("<a href='#gone'>a</a>", '<a href="#gone">: #gone is not on this page'),
        ("<i aria-describedby='gone'></i>", "<i>: aria-describedby points to nothing"),
        ("<i style='color: red'></i>", "<i> has style"),
        ("<i onclick='x()'></i>", "<i> has onclick"),
        ("<a href='https://example.org/'>a</a>", '<a href="https://example.org/"> leads elsewhere: https://example.org/'),
        ("<a href='javascript:x()'>a</a>", '<a href="javascript:x()"> leads elsewhere: javascript:x()'),
        ("<script>x()</script>", "an inline script"),
        ("<iframe></iframe>", "<iframe> has no place here"),
        ("<ul><p>a</p></ul>", "<p> inside <ul>"),
    ],
)
def test_each_fault_is_found(part: str, fault: str) -> None:
    assert fault in faults(SOUND.format(part))
