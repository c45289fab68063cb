"""Cases made from the published description itself: every call answers as described, whatever it is sent.

Valid and invalid values, limits on both sides, missing and unknown keys, other methods: never a fault, no status, content type or body
that is not described, and nothing accepted that the description forbids.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, settings
from schemathesis.python.asgi import shutdown_lifespans
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from app.main import create_app
from app.services.sample_runs import load_samples
from app.services.startup import prepare
from tests.applications import BASE_URL, settings_in

# Made without opening a database: the description alone decides which tests there are.
DESCRIPTION = create_app(settings_in(Path("unused"), database_url="sqlite:///never-opened.db")).openapi()
CALLS = schemathesis.openapi.from_dict(DESCRIPTION, config=schemathesis.Config()).include(path_regex="^/(api|healthz|readyz)")
# What is well-formed may still be refused: an unknown model, a format without a price.
MAY_REFUSE = [positive_data_acceptance]


# The fields of a form are all text on the wire, and 413 is no rejection to this check.
FORM = [*MAY_REFUSE, negative_data_rejection]


def check(case: Any, app: FastAPI) -> None:
    excluded = FORM if (case.method, case.path) == ("POST", "/api/v1/runs") else MAY_REFUSE
    case.call_and_validate(app=app, base_url=BASE_URL, excluded_checks=excluded)


def tried(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """An application with the sample runs, so that some ids and names are there."""
    app = create_app(settings_in(tmp_path_factory.mktemp("described")))
    prepare(app.state.context)
    load_samples(app.state.context, datetime(2026, 11, 29, tzinfo=UTC))
    yield app
    shutdown_lifespans()
    app.state.context.database.close()


@CALLS.parametrize()
@tried(5)
def test_every_call_answers_as_described(case: Any, served: FastAPI) -> None:
    check(case, served)


@pytest.mark.soak
@CALLS.parametrize()
@tried(400)
def test_every_call_answers_as_described_for_long(case: Any, served: FastAPI) -> None:
    check(case, served)
