"""The run that would decide, as parameters that the job's own model takes, and as a command."""

from app.domain.diagnosis import Undetermined
from app.domain.diagnosis.judging import MISSING
from app.domain.run import Run, Workload
from app.jobs import KINDS, read_parameters
from app.services.separating import command, separating_run

RUN = Run(format="generic", model="org/model", workload=Workload(prompt_tokens_mean=1999.6, output_tokens_mean=300.0, concurrency=32))


def question(run: dict[str, object] | None) -> Undetermined:
    return Undetermined(("a", "b"), "prefill", "something", run)


def test_the_load_is_that_of_the_run_but_for_what_the_question_varies() -> None:
    found = separating_run(question({"concurrency": [1]}), RUN)
    assert found == {
        "kind": "endpoint_sweep",
        "model": "org/model",
        "prompt_tokens": [2000],
        "output_tokens": [300],
        "concurrency": [1],
    }
    assert found is not None
    assert command(found) == "phaseline measure endpoint URL --model org/model --concurrency 1 --prompt 2000 --output 300"


def test_a_setting_to_look_up_is_no_run() -> None:
    assert separating_run(question(None), RUN) is None


def test_a_device_is_measured_by_itself() -> None:
    found = separating_run(question({"kind": "device_microbench", "dtypes": ["bf16"]}), RUN)
    assert found == {"kind": "device_microbench", "dtypes": ["bf16"]}
    assert found is not None
    assert command(found) == "phaseline measure device"


def test_every_run_that_a_diagnosis_can_ask_for_is_one_that_its_job_takes() -> None:
    runs = [run for _, run in MISSING.values() if run is not None]
    assert runs
    for run in runs:
        found = separating_run(question(dict(run)), RUN)
        assert found is not None
        kind = found.pop("kind")
        read_parameters(KINDS[kind], found | ({"target": "staging"} if kind == "endpoint_sweep" else {}))
