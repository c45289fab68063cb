"""A window of the browser as a person sees it: words, figures, and what the page complained about behind their back."""

import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

from playwright.sync_api import BrowserContext, Dialog, Locator, Page, expect

# Before any script of a page: a breach of the content security policy becomes a line of the console.
_LISTEN = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error("CSP " + event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile + ":" + event.lineNumber);
});
"""


@dataclass(frozen=True)
class Site:
    """The address of a running server, with the calls that prepare a test."""

    url: str

    def json(self, path: str) -> Any:
        """The JSON at `path`."""
        with urllib.request.urlopen(self.url + path) as answer:
            return json.load(answer)

    def post(self, path: str, body: bytes = b"", content_type: str = "application/octet-stream") -> Any:
        """What the server answers to `body`; JSON where it is JSON."""
        request = urllib.request.Request(self.url + path, data=body, headers={"content-type": content_type}, method="POST")
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer) if "json" in answer.headers["content-type"] else answer.url
        except HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error

    def create(self, kind: str, **body: Any) -> str:
        """The slug of a new device (`hardware`) or model (`models`)."""
        slug: str = self.post(f"/api/v1/{kind}", json.dumps(body).encode(), "application/json")["slug"]
        return slug

    def add_run(self, data: bytes, name: str = "report.json", **fields: str) -> int:
        """The number of the run in a result file, stored with these words beside it."""
        answer = self.post(f"/api/v1/runs?{urlencode({'name': name, **fields})}", data)
        number: int = answer["runs"][0]["id"]
        return number


class Window:
    """One tab in a context of its own."""

    def __init__(self, context: BrowserContext, site: Site) -> None:
        self.context = context
        self.site = site
        self.page: Page = context.new_page()
        self._said: list[str] = []
        self._allowed: list[str] = []
        context.add_init_script(_LISTEN)
        self.page.on("console", lambda message: self._said.append(f"{self.page.url}: {message.text}"))
        self.page.on("pageerror", lambda error: self._said.append(f"{self.page.url}: {error}"))
        self.page.on("requestfailed", lambda request: self._failed(request.url, request.failure))
        self.page.on("dialog", self._dialog)

    def _failed(self, url: str, failure: str | None) -> None:
        # A page that is left, or a question asked again while one is on its way, gives up its requests.
        if failure != "net::ERR_ABORTED":
            self._said.append(f"{url} was not loaded: {failure}")

    def _dialog(self, dialog: Dialog) -> None:
        self._said.append(f"{self.page.url} opened a dialog: {dialog.message}")
        dialog.dismiss()

    def reset(self) -> None:
        """As new: nothing remembered, the usual size, light."""
        if self.page.url.startswith(self.site.url):
            self.page.evaluate("localStorage.clear()")
            self.page.goto("about:blank")
        self.page.emulate_media(media="screen", color_scheme="light")
        self.page.set_viewport_size({"width": 1440, "height": 900})
        self._said.clear()
        self._allowed.clear()

    def size(self, width: int, height: int = 800) -> "Window":
        """A window of this size in pixels."""
        self.page.set_viewport_size({"width": width, "height": height})
        return self

    def allow(self, words: str) -> None:
        """Lines of the console with these words are expected: the browser notes each page that comes with an error's status."""
        self._allowed.append(words)

    def complaints(self) -> list[str]:
        """Everything the pages said so far that was not expected."""
        return [line for line in self._said if not any(words in line for words in self._allowed)]

    def go(self, path: str) -> "Window":
        """The page at `path`, loaded."""
        self.page.goto(path)
        return self

    def words(self, selector: str = "main") -> str:
        """The words that show there, white space single."""
        return " ".join(self.page.locator(selector).first.inner_text().split())

    def sees(self, *words: str, inside: str = "main") -> None:
        """Each of these words shows, at the latest in a moment."""
        for text in words:
            expect(self.page.locator(inside).first).to_contain_text(text, use_inner_text=True)

    def drawn(self) -> Locator:
        """The charts of the page once all of them are drawn."""
        plots = self.page.locator("figure[data-chart] > .plot")
        for index in range(plots.count()):
            expect(plots.nth(index).locator("svg.main-svg").first).to_be_attached()
        return plots

    def column(self, table: str, number: int) -> list[str]:
        """The cells of a column (from 1) in the body of a table."""
        return [" ".join(text.split()) for text in self.page.locator(f"{table} tbody tr > :nth-child({number})").all_inner_texts()]

    def choose(self, *files: Path | dict[str, Any]) -> None:
        """Choose files in the page's drop zone."""
        self.page.locator('input[type="file"]').first.set_input_files(list(files))  # type: ignore[arg-type]

    def too_wide(self) -> int:
        """How many pixels the page is wider than its window, once its figures had time to be drawn anew."""
        excess = 0
        for _ in range(40):
            excess = int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
            if excess <= 0:
                return 0
            self.page.wait_for_timeout(50)
        return excess
