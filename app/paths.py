"""Where the folders beside `app/` lie. The application runs from its tree (editable or copied)."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "templates"
STATIC = ROOT / "static"
