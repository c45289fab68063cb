"""A model's architecture from its Hugging Face `config.json`, treated as plain data: one file for each family of configs.

A config is read by the rules of its model_type's class. Keys that would change the layers and that its reader does not look at refuse
the config by their name: a wrong price is worse than none.
"""

from collections.abc import Callable, Mapping

from app.domain.architecture import ModelArchitecture, merged
from app.domain.configs.dense import read_dense
from app.domain.configs.dense_families import FAMILIES
from app.domain.configs.foreign import refuse_foreign_class, refuse_foreign_keys
from app.domain.configs.gemma4 import read_gemma4
from app.domain.configs.gpt import (
    read_bloom,
    read_falcon,
    read_gpt2,
    read_gpt_bigcode,
    read_gpt_neox,
    read_gptj,
    read_mpt,
    read_opt,
    read_phi,
    read_qwen,
)
from app.domain.configs.hybrid import (
    read_falcon_h1,
    read_jamba,
    read_mamba,
    read_mamba2,
    read_minimax,
    read_nemotron_h,
    read_qwen3_5,
    read_qwen3_next,
)
from app.domain.configs.latent import read_deepseek, read_kimi, read_sparse_latent
from app.domain.configs.mixture import (
    read_glm4_moe,
    read_gpt_oss,
    read_hunyuan,
    read_laguna,
    read_llama4,
    read_minimax_m2,
    read_mixtral,
    read_qwen2_moe,
    read_qwen3_moe,
)
from app.domain.configs.reader import ConfigReader, shown
from app.domain.configs.shape import Shape
from app.domain.errors import UnsupportedModel

__all__ = ["MODEL_TYPES", "NESTED", "from_config"]

NATIVE_DTYPES: Mapping[str, str] = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "fp32": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}

READERS: Mapping[str, Callable[[ConfigReader, list[str]], Shape]] = {
    "gpt2": read_gpt2,
    "gpt_bigcode": read_gpt_bigcode,
    "gptj": read_gptj,
    "gpt_neox": read_gpt_neox,
    "opt": read_opt,
    "bloom": read_bloom,
    "mpt": read_mpt,
    "falcon": read_falcon,
    "phi": read_phi,
    "phi-msft": read_phi,
    "qwen": read_qwen,
    "mixtral": read_mixtral,
    "qwen2_moe": read_qwen2_moe,
    "qwen3_moe": read_qwen3_moe,
    "qwen3_vl_moe_text": read_qwen3_moe,
    "minimax_m2": read_minimax_m2,
    "gpt_oss": read_gpt_oss,
    "glm4_moe": read_glm4_moe,
    "hunyuan": read_hunyuan,
    "hunyuan_v1_moe": read_hunyuan,
    "llama4_text": read_llama4,
    "laguna": read_laguna,
    "deepseek_v2": read_deepseek,
    "deepseek_v3": read_deepseek,
    "kimi_k2": read_kimi,
    "glm4_moe_lite": read_deepseek,
    "deepseek_v32": read_sparse_latent,
    "glm_moe_dsa": read_sparse_latent,
    "mamba": read_mamba,
    "falcon_mamba": read_mamba,
    "mamba2": read_mamba2,
    "jamba": read_jamba,
    "nemotron_h": read_nemotron_h,
    "qwen3_next": read_qwen3_next,
    "qwen3_5_moe_text": read_qwen3_next,
    "qwen3_5_text": read_qwen3_5,
    "minimax": read_minimax,
    "minimax_text_01": read_minimax,
    "falcon_h1": read_falcon_h1,
    "gemma4_text": read_gemma4,
    "gemma4_unified_text": read_gemma4,
}

# Models of several senses keep their language model under text_config, often saved as the difference from the class defaults.
# The first model_type is the one taken where the inner object states none.
NESTED: Mapping[str, tuple[str, ...]] = {
    "gemma3": ("gemma3_text",),
    "gemma4": ("gemma4_text",),
    "gemma4_unified": ("gemma4_unified_text",),
    "mistral3": ("mistral", "ministral3"),
    "llama4": ("llama4_text",),
    "kimi_k25": ("kimi_k2",),
    "qwen3_vl": ("qwen3_vl_text",),
    "qwen3_vl_moe": ("qwen3_vl_moe_text",),
    "qwen3_5": ("qwen3_5_text",),
    "qwen3_5_moe": ("qwen3_5_moe_text",),
}
MODEL_TYPES = tuple(sorted((*FAMILIES, *READERS, *NESTED)))


def from_config(config: Mapping[str, object], name: str = "") -> ModelArchitecture:
    """The architecture of a model from its parsed `config.json`.

    Raises UnsupportedModel, whose `.field` is the config key, for a model_type or key without a price and for values that are
    missing, not whole numbers, absurd or inconsistent.
    """
    if not isinstance(config, Mapping):
        raise UnsupportedModel("config.json", "config.json is not a JSON object; give the model's own config.json.")
    top = ConfigReader(config)
    reader, model_type, nested = _text_part(top)
    notes: list[str] = []
    if model_type in FAMILIES:
        # Nothing that hints at other layers is read by the dense reader.
        refuse_foreign_keys(reader)
        refuse_foreign_class(top)
        shape = read_dense(reader, model_type, notes)
    else:
        shape = READERS[model_type](reader, notes)
        refuse_foreign_keys(reader)
    if nested:
        refuse_foreign_keys(top)
    return ModelArchitecture(
        name=name or model_type,
        model_type=str(config["model_type"]),
        hidden=shape.hidden,
        vocab=shape.vocab,
        groups=merged(shape.groups),
        tied_embeddings=top.flag("tie_word_embeddings", shape.tied) if nested else shape.tied,
        final_norm_parameters=shape.final_norm_parameters,
        looked_up_parameters=shape.looked_up_parameters,
        position_parameters=shape.position_parameters,
        side_projection=shape.side_projection,
        extra_prediction_layers=shape.extra_prediction_layers,
        experts_alone_quantised=shape.experts_alone_quantised,
        max_positions=shape.max_positions,
        native_dtype=_native_dtype(top, reader, notes),
        notes=(*dict.fromkeys(notes), *_other_notes(top, reader, shape)),
    )


def _text_part(top: ConfigReader) -> tuple[ConfigReader, str, bool]:
    """The object that describes the language model, its model_type, and whether it is nested in a model of several senses."""
    model_type = top.text("model_type")
    if model_type is None:
        raise top.refuse("model_type", "is missing, so the kind of model is not known; give the model's own config.json.")
    if model_type in FAMILIES or model_type in READERS:
        if top.has("text_config"):
            raise top.refuse("text_config", f"is nested in a config of model_type {model_type}; give the config of the text model.")
        return top, model_type, False
    if model_type not in NESTED:
        if top.has("block_configs"):
            raise top.refuse("block_configs", "gives each block sizes of its own, which are not priced yet.")
        raise top.refuse("model_type", f"is {shown(model_type)}, which is not priced yet; priced are {', '.join(MODEL_TYPES)}.")
    reader = top.inner("text_config")
    expected = NESTED[model_type]
    stated = reader.text("model_type")
    if stated is not None and stated not in expected:
        words = " or ".join(expected)
        raise reader.refuse("model_type", f"is {shown(stated)} inside a {model_type} config, where {words} is expected.")
    return reader, stated or expected[0], True


def _native_dtype(top: ConfigReader, reader: ConfigReader, notes: list[str]) -> str:
    """The number format the weights are kept in: that of a quantised checkpoint whose method is known, else the one they were saved in.

    bf16 where the config does not say or names an unknown one.
    """
    quantised = _quantised_dtype(top, reader)
    if quantised is not None:
        return quantised
    for source in (reader, top):
        for key in ("dtype", "torch_dtype"):
            stated = source.text(key)
            if stated is None:
                continue
            known = NATIVE_DTYPES.get(stated.removeprefix("torch.").lower())
            if known is None:
                notes.append(f"{source.path(key)} is {shown(stated)}, an unknown format: bf16 is taken.")
            return known or "bf16"
    return "bf16"


def _quantised_dtype(top: ConfigReader, reader: ConfigReader) -> str | None:
    """The format of a quantised checkpoint, None for a plain one and for a method that is not known well enough."""
    for source in (top, reader):
        stated = source.values.get("quantization_config")
        if not isinstance(stated, Mapping):
            continue
        method, bits = stated.get("quant_method"), stated.get("bits", 4)
        if method == "fp8":
            return "fp8_block" if stated.get("weight_block_size") else "fp8"
        if method == "modelopt":
            return {"NVFP4": "nvfp4", "FP8": "fp8"}.get(str(stated.get("quant_algo")))
        if method in ("awq", "gptq") and bits == 4:
            return str(method)
        return "mxfp4" if method == "mxfp4" else None
    return None


def _other_notes(top: ConfigReader, reader: ConfigReader, shape: Shape) -> list[str]:
    """What a reader of the result should know: another part left out, layers not counted, a quantised checkpoint."""
    notes = []
    if reader.prefix:
        parts = [word for word in ("vision", "audio") if top.values.get(f"{word}_config")]
        towers = f"{' and '.join(parts)} {'towers' if len(parts) > 1 else 'tower'}" if parts else "other parts"
        verb = "are" if len(parts) != 1 else "is"
        notes.append(f"Text part only: the {towers} of the config {verb} left out.")
    if shape.extra_prediction_layers:
        notes.append(f"Layers that predict further tokens ({shape.extra_prediction_layers}) are neither counted nor priced.")
    for source in (top, reader):
        quantised = source.values.get("quantization_config")
        if isinstance(quantised, Mapping) and quantised:
            method = shown(quantised.get("quant_method", "unnamed"))
            notes.append(f"The checkpoint is quantised ({method}); its weights are priced at the weight format of the request.")
            break
    return notes
