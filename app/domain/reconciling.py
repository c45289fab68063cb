"""Whether a client and its server speak of the same requests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reconciliation:
    """Requests that the server began to answer, those that the client can name, and what is left between them."""

    served: int
    explained: int

    @property
    def difference(self) -> int:
        """Requests that only one side knows: positive, somebody else's; negative, they never arrived."""
        return self.served - self.explained


def reconcile(served: int, completed: int, failed: int = 0, warmup: int = 0) -> Reconciliation:
    """Set a server's count of first tokens against its client's requests: those that succeeded, failed on the way, and warmed up."""
    return Reconciliation(served, completed + failed + warmup)
