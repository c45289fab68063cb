"""The form of a job, made from its parameter model: texts in, checked values out, a message beside the field that cannot be used."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from starlette.datastructures import QueryParams

from app.domain.text import clean_text
from app.jobs import KINDS

Entry = Literal["text", "choice", "tick", "list"]
_LONGEST = 2000
_YES = frozenset({"true", "on", "1", "yes"})


@dataclass(frozen=True)
class JobField:
    """One field: `entry` says how it is filled in, `choices` among what; `suggest` names a list of known values."""

    key: str
    title: str
    description: str
    entry: Entry
    value: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    suggest: str = ""
    required: bool = False
    error: str = ""


@dataclass(frozen=True)
class JobForm:
    """The fields of a kind, and what was typed as parameters (texts; lists where the field is one)."""

    kind: str
    title: str
    description: str
    fields: tuple[JobField, ...]
    parameters: Mapping[str, Any]

    def with_error(self, field: str, message: str) -> "JobForm":
        """The message beside its field; that of an item of a list beside the list."""
        first = field.split(".")[0]
        marked = tuple(replace(each, error=message) if each.key == first else each for each in self.fields)
        return JobForm(self.kind, self.title, self.description, marked, self.parameters)

    def names(self, field: str) -> bool:
        """Whether there is such a field."""
        return any(each.key == field.split(".")[0] for each in self.fields)


def read_job_form(kind: str, typed: QueryParams | Mapping[str, str]) -> JobForm:
    """The form of a known kind, filled with what an address or a sent form says; what is absent or empty has its default.

    Two things are said by emptiness: a list that may be empty and was emptied, and, in a form that was `sent`, a tick taken away.
    """
    model = KINDS[kind]
    shown: list[JobField] = []
    parameters: dict[str, Any] = {}
    for key, info in model.model_fields.items():
        entry, text = _entry(info), _typed(typed, key)
        if entry == "tick" and (text or typed.get("sent")):
            parameters[key] = text.lower() in _YES
        elif entry == "list" and (text or (key in typed and _may_be_empty(info))):
            parameters[key] = [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]
        elif text:
            parameters[key] = text
        value = _shown(parameters[key]) if key in parameters else _shown(_default(info))
        shown.append(_field(key, info, entry, value))
    return JobForm(kind, model.title, (model.__doc__ or "").strip().split("\n")[0], tuple(shown), parameters)


def job_query(kind: str, parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The query of /jobs/new that fills its form with these parameters; defaults are left out."""
    fields = KINDS[kind].model_fields
    found = [("kind", kind)]
    for key, value in parameters.items():
        if key in fields and value is not None and _shown(value) != _shown(_default(fields[key])):
            found.append((key, _shown(value)))
    return found


def _typed(typed: QueryParams | Mapping[str, str], key: str) -> str:
    values = typed.getlist(key) if isinstance(typed, QueryParams) else [typed.get(key, "")]
    return clean_text(", ".join(values), _LONGEST)


def _field(key: str, info: FieldInfo, entry: Entry, value: str) -> JobField:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return JobField(
        key,
        info.title or key,
        info.description or "",
        entry,
        value,
        unit=str(extra.get("unit", "")),
        choices=tuple(str(each) for each in get_args(info.annotation)) if entry == "choice" else (),
        suggest={"model": "known-models", "target": "known-targets"}.get(key, ""),
        required=info.is_required(),
    )


def _entry(info: FieldInfo) -> Entry:
    annotation = info.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is Literal:
        return "choice"
    if annotation is bool:
        return "tick"
    return "list" if get_origin(annotation) is tuple else "text"


def _default(info: FieldInfo) -> Any:
    return None if info.is_required() else info.default


def _may_be_empty(info: FieldInfo) -> bool:
    return not any(getattr(rule, "min_length", 0) for rule in info.metadata)


def _shown(value: Any) -> str:
    """How a value stands in its field."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
