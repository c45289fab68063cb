"""Signs that several rules about steps share, and sums that they show."""

from app.domain.diagnosis.rule import Advice, above, below, doubted, fact, no_rise, rose, silent, still, within
from app.domain.diagnosis.thresholds import MOSTLY, PASSED_OVER, STEP

ITL = "{itl_base_s} → {itl_other_s}, {itl_added_s} a step"
SLOWER = rose("itl_change", "A step takes longer: {itl_change}.")
STEP_SLOWER = rose("step_itself_change", "The step itself takes longer, prompts of others aside: {step_itself_change}.")
FIRST_SLOWER = rose("ttft_change", "The first token takes longer: {ttft_change}.")
STEP_STILL = still("step_itself_change", "The step itself did not move: {step_itself_change}.")
PROMPT_SAME = no_rise("first_itself_change", "The first token itself does not take longer: {first_itself_change}.")
NOT_FOR_EACH_TOKEN = below(
    "tokens_share_of_first_change", MOSTLY, "What a first token gained is not for each prompt token: {tokens_share_of_first_change}."
)
TOKENS_SAME = no_rise(
    "prompt_itself_change", "The prompt pass does not take longer than the passes it waits for account for: {prompt_itself_change}."
)
SETTINGS_SAME = below("step_settings_moved", 0.5, "No setting that is known to act on steps was changed.")
NO_JUMP = below("step_jump_change", STEP - 1, "There is no new jump over the batch.")
CORE_CLOCK_SAME = still("sm_clock_change", "The core clock is the same: {sm_clock_change}.")
EACH_SEQUENCE = above(
    "sequences_share_of_step_change",
    MOSTLY,
    "{sequences_share_of_step_change} of the added time grows with the number of sequences, {extra_per_sequence_s} each.",
)
NOT_EACH_SEQUENCE = below(
    "sequences_share_of_step_change",
    MOSTLY,
    "{sequences_share_of_step_change} of the added time grows with the number of sequences: {extra_step_first_s} at one.",
)
LIKE_THE_STEP = within(
    "extra_like_step",
    MOSTLY,
    1 / MOSTLY,
    "The added time grows over the batch as the step does: {extra_step_first_s} at one, {extra_step_last_s} at most.",
)
UNLIKE_THE_STEP = below(
    "extra_like_step", MOSTLY, "The added time is a constant over the batch: {extra_step_first_s} at one, {extra_step_last_s} at most."
)
MEMORY_CLOCK_SAME = still("memory_clock_change", "The memory clock is the same: {memory_clock_change}.")
SOFTWARE_CHANGED = doubted(fact(above("software_changed", 0.5, "Another version of the engine runs, or other kernels of it.")))
NOT_PASSED_OVER = silent(
    below(
        "passed_over_share_added", PASSED_OVER, "No sequence waits while the others go on: {passed_over_share_added} more of the requests."
    )
)
NOT_IN_BURSTS = silent(above("gap_median_change", -MOSTLY, "Tokens do not come in bursts: the median gap moved by {gap_median_change}."))
FLOOR = "{step_bytes} ÷ bandwidth = {floor_s}; measured {step_s}, {share_of_floor}"
LAUNCHES = (
    Advice("cuda_graphs", "17.6 → 6.5 tokens/s without them (vllm-project/vllm#13204)"),
    Advice("larger_batch"),
    Advice("speculative_decoding"),
)
