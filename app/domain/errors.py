"""The small tree of errors that the domain and the layers above it raise on purpose.

PhaselineError            something the user can mend; its text is one sentence that says what, where and what to do
├── UnsupportedModel      an architecture that is not priced; `.field` is the config key that says so
├── UnknownName           a slug or alias that names nothing; `.near` lists the closest known ones
├── InvalidRequest        a request whose numbers cannot be priced; `.field` is the offending key
├── ImportRefused         a file that is not read; `.reason` and `.tried` say why
├── NotFound              an id or name under which nothing is stored
├── Conflict              a change that what is stored does not allow
├── NotAllowed            a caller who may not do this
└── TooLarge              a file over the limit, or an archive
"""


class PhaselineError(Exception):
    """Something the user can mend: the message is a sentence for them."""


class UnsupportedModel(PhaselineError):
    """A model whose architecture has no price here; never priced as something else."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class UnknownName(PhaselineError):
    """A name that no catalog entry or stored profile answers to."""

    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.near = near


class InvalidRequest(PhaselineError):
    """A request with a value that cannot be priced."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class ImportRefused(PhaselineError):
    """A file that gives no run. `reason` is one sentence; `tried` pairs each format id with why it declined.

    `flag` is the word for what is odd about the file: `unknown_schema`, `truncated_file`, or None.
    """

    def __init__(self, reason: str, tried: tuple[tuple[str, str], ...] = (), flag: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.tried = tried
        self.flag = flag


class NotFound(PhaselineError):
    """Nothing is stored under this id or name."""


class Conflict(PhaselineError):
    """The request is fine, but what is stored does not allow it."""


class NotAllowed(PhaselineError):
    """The caller may not do this: no token, or one that does not count."""


class TooLarge(PhaselineError):
    """A file over the limit, or an archive that is not unpacked yet."""
