"""Models, devices and engines that the domain tests price: small enough to work out by hand, or the founding text's own."""

from dataclasses import replace

from app.domain.architecture import ModelArchitecture, dense
from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile
from app.domain.layers import Attention, Experts, Latent, LayerGroup, Mlp, Reach, Recurrent

# The founding text: 8e9 parameters, 4.2e14 FLOP/s achieved of a 9.89e14 peak, 3.35e12 bytes/s.
TEXTBOOK_8B = dense(
    name="textbook-8b",
    model_type="llama",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    intermediate=14336,
    vocab=128256,
    norm_parameters_per_layer=8192,
    final_norm_parameters=4096,
    declared_parameters=8_000_000_000,
)
TEXTBOOK_H100 = HardwareProfile(
    slug="textbook-h100",
    name="Textbook H100",
    vendor="NVIDIA",
    bandwidth_bytes_per_s=3.35e12,
    peak_flops_per_s={"bf16": 9.89e14},
    achieved_flops_per_s={"bf16": 4.2e14},
    achieved_bandwidth_bytes_per_s=3.35e12,
)

# Two layers small enough for a pencil: 1,704 parameters (see test_architecture).
TINY = dense(
    name="tiny",
    model_type="llama",
    layers=2,
    hidden=8,
    heads=4,
    kv_heads=2,
    head_dim=2,
    intermediate=16,
    vocab=32,
    norm_parameters_per_layer=16,
    final_norm_parameters=8,
)
# The same shapes counted exactly, with the context that the model's config states.
LLAMA_8B = replace(TEXTBOOK_8B, name="llama-8b", declared_parameters=None, max_positions=131072)
# 128 experts of which a token takes 4, every second layer sees 128 positions; experts alone are kept in 4 bits.
MIXTURE = ModelArchitecture(
    "mixture",
    "gpt_oss",
    hidden=2880,
    vocab=201088,
    groups=tuple(
        LayerGroup(
            18,
            Attention(64, 8, 64, reach=reach),
            experts=Experts(128, 4, 2880, expert_vectors=8640, vectors=128),
            norm_parameters=5760,
            bias_parameters=8064,
        )
        for reach in (Reach(), Reach("window", 128))
    ),
    final_norm_parameters=2880,
    experts_alone_quantised=True,
)
# Latent attention, sparse on the best 2,048 positions; a shared expert beside 256 routed ones, the first layers dense.
_LATENT = Latent(128, 1536, 512, 128, 64, 128, top_k=2048, index_heads=64, index_dim=128)
SPARSE_LATENT = ModelArchitecture(
    "sparse-latent",
    "deepseek_v32",
    hidden=7168,
    vocab=129280,
    groups=(
        LayerGroup(3, latent=_LATENT, mlp=Mlp(18432), norm_parameters=16640),
        LayerGroup(58, latent=_LATENT, experts=Experts(256, 8, 2048, shared_intermediate=2048), norm_parameters=16640),
    ),
    final_norm_parameters=7168,
)
# Three layers of four with a recurrent state, the fourth with gated attention; many small experts.
_EXPERTS = Experts(512, 10, 512, shared_intermediate=512, vectors=2048)
_DELTA = Recurrent("gated_delta_net", 4096, 12352, 524288, 24576, 4259840, 32960)
HYBRID = ModelArchitecture(
    "hybrid",
    "qwen3_next",
    hidden=2048,
    vocab=151936,
    groups=(
        LayerGroup(36, recurrent=_DELTA, experts=_EXPERTS, norm_parameters=4096),
        LayerGroup(12, Attention(16, 2, 256, gate=4096), experts=_EXPERTS, norm_parameters=4608),
    ),
    final_norm_parameters=2048,
)
# Five of six layers see 1,024 positions, tied tables, a query wider than hidden.
WINDOWED = dense(
    name="windowed",
    model_type="gemma3_text",
    layers=12,
    hidden=1024,
    heads=8,
    kv_heads=4,
    head_dim=256,
    intermediate=4096,
    vocab=32000,
    tied_embeddings=True,
    sliding_window=1024,
    windowed_layers=10,
    norm_parameters_per_layer=4 * 1024 + 512,
    final_norm_parameters=1024,
)
# A pencil device: 1e12 FLOP/s and 1e11 bytes/s, ridge 10; 1e9 bytes of memory, a link of 1e10 bytes/s.
PENCIL = HardwareProfile(
    slug="pencil",
    name="Pencil",
    vendor="Test",
    bandwidth_bytes_per_s=1e11,
    peak_flops_per_s={"bf16": 1e12, "fp8": 2e12, "fp32": 1e11},
    memory_bytes=1e9,
    link_bytes_per_s=1e10,
)
SERVER = HardwareProfile(
    slug="server",
    name="Server",
    vendor="Test",
    bandwidth_bytes_per_s=3.35e12,
    peak_flops_per_s={"fp32": 6.7e13, "tf32": 4.945e14, "bf16": 9.89e14, "fp16": 9.89e14, "fp8": 1.979e15, "int8": 1.979e15},
    memory_bytes=8e10,
    link_bytes_per_s=4.5e11,
    compute_efficiency={"bf16": 0.8, "fp8": 0.44},
    bandwidth_efficiency=0.86,
    launch_s=3e-6,
    bandwidth_efficiency_by_dtype={"bf16": 0.86, "fp8": 0.77},
    launch_s_by_dtype={"bf16": 3e-6, "fp8": 6e-6},
)
GEFORCE = HardwareProfile(
    slug="geforce",
    name="Test GeForce 4090",
    vendor="NVIDIA",
    bandwidth_bytes_per_s=1.008e12,
    peak_flops_per_s={"fp32": 8.26e13, "bf16": 1.652e14, "fp16": 3.303e14, "fp8": 6.606e14},
    memory_bytes=2.4e10,
)
OLD_GEFORCE = HardwareProfile("old-geforce", "Test GeForce 2080", "NVIDIA", 6.16e11, {"fp32": 1.34e13, "fp16": 1.076e14}, 1.1e10)
OLD_CARD = HardwareProfile("old", "Test V100", "NVIDIA", 9e11, {"fp32": 1.57e13, "fp16": 1.25e14}, 3.2e10)
ONLY_FP32 = HardwareProfile("cpu", "Test CPU", "Test", 1e11, {"fp32": 2e12})

ENGINE = EngineProfile(
    slug="served",
    name="Served",
    weight_bandwidth_efficiency={"any": 0.9},
    kv_bandwidth_efficiency=0.8,
    compute_efficiency={"16bit": 0.9, "any": 0.8},
    launch_s=2e-6,
    per_layer_s=23e-6,
    step_s=1.6e-3,
    per_sequence_s=53e-6,
    front_end_s=45e-3,
    all_reduce_alpha_s=6e-6,
    interference=0.9,
    prefill_floor_per_layer_s=1e-4,
    itl_range=(0.8, 1.25),
    ttft_range=(0.5, 2.0),
)
