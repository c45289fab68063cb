"""Reading an upload's bytes off the wire, within the limit, before anything is parsed."""

from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from app.domain.errors import InvalidRequest, TooLarge
from app.domain.identity import SAID

FIELDS = ("project", *SAID, "tags", "notes")
_MAX_FILES = 100
_MAX_FIELDS = 200
# All files of one form together, in units of the limit of one: they are held in memory until they are read.
_FORM_LIMITS = 4
_MIB = 2**20


def too_large(limit: int) -> TooLarge:
    """The sentence for a file over the limit (bytes)."""
    size = f"{limit / _MIB:g} MiB" if limit >= _MIB else f"{limit:,} bytes"
    return TooLarge(f"The file is larger than {size}, the most this server reads; cut it, or leave per-request arrays out.")


async def read_upload(request: Request, limit: int) -> tuple[list[tuple[str, bytes]], dict[str, Any]]:
    """Files as (name, bytes) and the fields beside them, from a multipart form or from a raw body with its query.

    Raises TooLarge as soon as more than `limit` bytes have come for one file, InvalidRequest when there is no file.
    """
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("multipart/form-data"):
        return await _from_form(request, limit)
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > limit:
            raise too_large(limit)
    if not data:
        raise InvalidRequest("file", "The body is empty: send the bytes of a result file, or a multipart form with `file`.")
    fields = {name: value for name in FIELDS if (value := request.query_params.get(name))}
    return [(request.query_params.get("name", "upload"), bytes(data))], fields


async def _from_form(request: Request, limit: int) -> tuple[list[tuple[str, bytes]], dict[str, Any]]:
    form = await _parsed_form(request, limit)
    files: list[tuple[str, bytes]] = []
    try:
        for part in form.getlist("file"):
            if isinstance(part, UploadFile) and (part.filename or part.size):
                files.append((part.filename or "upload", await part.read()))
        pasted = form.get("pasted")
        if isinstance(pasted, str) and pasted.strip():
            files.append(("pasted", pasted.encode("utf-8", "replace")))
        fields = {name: value for name in FIELDS if isinstance(value := form.get(name), str) and value.strip()}
    finally:
        await form.close()
    if not files:
        raise InvalidRequest("file", "There is no file in this form: choose one, drop one, or paste its text.")
    return files, fields


async def _parsed_form(request: Request, limit: int) -> FormData:
    parser = _LimitedParser(request.headers, request.stream(), max_files=_MAX_FILES, max_fields=_MAX_FIELDS, max_part_size=limit)
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise InvalidRequest("file", f"The form cannot be read: {error.message.rstrip('.')}.") from error


class _LimitedParser(MultiPartParser):
    """A form parser that stops at the first byte too many, not when all of them lie in temporary files, and takes no half of a form."""

    _complete = False
    _part_bytes = 0
    _form_bytes = 0

    async def parse(self) -> FormData:
        form = await super().parse()
        if not self._complete:
            # A file that was not finished is no part of the form, so closing the form would leave it open.
            for file in self._files_to_close_on_error:
                file.close()
            raise InvalidRequest("file", "The form is cut off before its end, so nothing was stored: send it again.")
        return form

    def on_part_begin(self) -> None:
        super().on_part_begin()
        self._part_bytes = 0

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._part_bytes += end - start
        self._form_bytes += end - start
        if self._part_bytes > self.max_part_size:
            raise too_large(self.max_part_size)
        if self._form_bytes > _FORM_LIMITS * self.max_part_size:
            raise TooLarge(f"The files of this form are larger than {_FORM_LIMITS} times what one may be: send them in several forms.")
        super().on_part_data(data, start, end)

    def on_end(self) -> None:
        self._complete = True
