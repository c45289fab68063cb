"""What every page's HTML must be, as a list of faults: balanced, one `h1`, labelled, nothing inline, nothing from elsewhere.

Only the standard library: a page is read tag by tag as written, so a slip that a browser would mend silently is still seen.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

# The SVG shapes are not void in HTML, but they are written `<path/>` and hold nothing.
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "source", "wbr", "path", "rect", "line", "circle", "use"})
HEADINGS = ("h1", "h2", "h3", "h4")
# `a` is not among them: the cards of Home are links around blocks, which HTML allows.
PHRASING_ONLY = frozenset({"p", "h1", "h2", "h3", "h4", "span", "button", "summary", "pre", "code", "strong", "legend", "label"})
FLOW = frozenset(
    {"div", "p", "ul", "ol", "dl", "table", "form", "section", "figure", "main", "nav", "details", "fieldset", "pre", *HEADINGS}
)
FIELDS = frozenset({"input", "select", "textarea"})


@dataclass
class Element:
    """One start tag: its name, attributes, ancestors (outermost first) and the text inside it so far."""

    tag: str
    attributes: dict[str, str]
    ancestors: "tuple[Element, ...]"
    text: list[str] = field(default_factory=list)

    def within(self, *tags: str) -> bool:
        return any(element.tag in tags for element in self.ancestors)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())

    def __str__(self) -> str:
        shown = " ".join(f'{key}="{value}"' for key, value in self.attributes.items() if key in ("id", "class", "name", "href", "src"))
        return f"<{self.tag} {shown}>".replace(" >", ">")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"<{tag}> has an attribute twice")
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self.open))
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1].tag != tag:
            self.faults.append(f"</{tag}> where {self.open[-1] if self.open else 'nothing'} is open")
            if any(element.tag == tag for element in self.open):
                while self.open.pop().tag != tag:
                    pass
            return
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text.append(data)


@dataclass(frozen=True)
class Page:
    """A page as its elements in order, with the faults of its nesting."""

    elements: tuple[Element, ...]
    nesting_faults: tuple[str, ...]

    def all(self, *tags: str) -> list[Element]:
        return [element for element in self.elements if element.tag in tags]

    def form(self, action: str) -> dict[str, str]:
        """The fields of the form that posts to `action`, as a browser would send them untouched."""
        (form,) = [element for element in self.all("form") if element.attributes.get("action") == action]
        inside = [element for element in self.elements if form in element.ancestors]
        sent = {}
        for element in inside:
            if element.tag == "input" and element.attributes.get("type") not in ("file", "checkbox", "submit"):
                sent[element.attributes["name"]] = element.attributes.get("value", "")
            if element.tag == "textarea":
                sent[element.attributes["name"]] = "".join(element.text).removeprefix("\n")
            if element.tag == "select":
                options = [option for option in inside if option.tag == "option" and element in option.ancestors]
                chosen = next((option for option in options if "selected" in option.attributes), options[0])
                sent[element.attributes["name"]] = chosen.attributes["value"]
        return sent

    def links(self) -> list[str]:
        """Every address that the page leads to or loads."""
        found = [element.attributes.get(key) for element in self.elements for key in ("href", "src", "data-plotly", "data-plotly-css")]
        return [address for address in found if address]

    @property
    def ids(self) -> list[str]:
        return [element.attributes["id"] for element in self.elements if "id" in element.attributes]


def read(html: str) -> Page:
    """The page in `html`."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    left = [f"{element} is never closed" for element in reader.open]
    return Page(tuple(reader.elements), (*reader.faults, *left))


def faults(html: str) -> list[str]:
    """Everything wrong with a whole page; an empty list when nothing is."""
    page = read(html)
    checks = (_document, _headings, _content, _names, _tables, _references, _safety)
    return [*page.nesting_faults, *(fault for check in checks for fault in check(page))]


def _document(page: Page) -> Iterator[str]:
    html = page.all("html")
    if len(html) != 1 or html[0].attributes.get("lang") != "en":
        yield "no <html lang=en>"
    titles = page.all("title")
    if len([title for title in titles if not title.within("svg")]) != 1 or not titles[0].words:
        yield "no title"
    if len(page.all("main")) != 1:
        yield "not one main"
    doubled = {name for name in page.ids if page.ids.count(name) > 1}
    if doubled:
        yield f"ids twice: {sorted(doubled)}"


def _headings(page: Page) -> Iterator[str]:
    levels = [int(element.tag[1]) for element in page.all(*HEADINGS)]
    if levels.count(1) != 1:
        yield f"{levels.count(1)} h1"
    for before, after in itertools.pairwise(levels):
        if after > before + 1:
            yield f"h{before} is followed by h{after}"
    yield from (f"{element} is empty" for element in page.all(*HEADINGS) if not element.words)


def _content(page: Page) -> Iterator[str]:
    for element in page.elements:
        parent = element.ancestors[-1].tag if element.ancestors else ""
        if element.tag in FLOW and parent in PHRASING_ONLY:
            yield f"{element} inside <{parent}>"
        if element.tag in ("a", "button") and element.within("a", "button"):
            yield f"{element} inside a link or button"
        if element.tag == "form" and element.within("form"):
            yield f"{element} inside a form"
        if parent in ("ul", "ol") and element.tag != "li":
            yield f"{element} inside <{parent}>"
        if parent == "tr" and element.tag not in ("th", "td"):
            yield f"{element} inside <tr>"


def _names(page: Page) -> Iterator[str]:
    for element in page.elements:
        named = bool(element.attributes.get("aria-label"))
        if element.tag in FIELDS and element.attributes.get("type") not in ("hidden", "submit"):
            label = next((outer for outer in element.ancestors if outer.tag == "label"), None)
            if not named and (label is None or not label.words):
                yield f"{element} has no label"
            if not element.attributes.get("name"):
                yield f"{element} has no name"
        if element.tag in ("a", "button", "summary") and not named and not element.words:
            yield f"{element} has no words"
        if element.tag == "button" and "type" not in element.attributes:
            yield f"{element} has no type"
        if element.tag == "img" and "alt" not in element.attributes:
            yield f"{element} has no alt"
        if (
            element.tag == "svg"
            and element.attributes.get("aria-hidden") != "true"
            and not (element.attributes.get("role") == "img" and named)
        ):
            yield f"{element} is neither hidden nor named"
        if element.attributes.get("role") in ("img", "region") and not named:
            yield f"{element} has a role without a name"
        if element.tag == "nav" and not named:
            yield f"{element} has no name"


def _tables(page: Page) -> Iterator[str]:
    for table in page.all("table"):
        if not any(element.tag == "th" and table in element.ancestors for element in page.elements):
            yield f"{table} has no header cell"
    for cell in page.all("th"):
        if cell.attributes.get("scope") not in ("col", "row", "colgroup", "rowgroup"):
            yield f"a header cell “{cell.words}” without scope"


def _references(page: Page) -> Iterator[str]:
    ids = set(page.ids)
    for element in page.elements:
        for key in ("aria-describedby", "aria-labelledby", "for", "list"):
            if key in element.attributes and element.attributes[key] not in ids:
                yield f"{element}: {key} points to nothing"
        for key in ("href", "hx-target"):
            address = element.attributes.get(key, "")
            if address.startswith("#") and address[1:] not in ids:
                yield f"{element}: {address} is not on this page"


def _safety(page: Page) -> Iterator[str]:
    for element in page.elements:
        for key, value in element.attributes.items():
            if key == "style" or key.startswith(("on", "hx-on")):
                yield f"{element} has {key}"
            if key in ("href", "src", "action", "formaction") and (value.startswith("//") or ":" in value.split("/")[0]):
                yield f"{element} leads elsewhere: {value}"
        if element.tag in ("style", "iframe", "object", "embed", "base"):
            yield f"{element} has no place here"
        if element.tag == "script" and "src" not in element.attributes and element.attributes.get("type") != "application/json":
            yield "an inline script"
