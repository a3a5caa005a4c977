"""The published checkpoint layout: which tensor files exist, which names and shapes they hold.

The one place that knows tensor names. Sizes are arguments, so that the same functions describe a
tiny checkpoint, the published one and anything between. What no tensor shape tells (dilation, hop,
quantiser levels) is a property of the architecture and stands here as a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

Shapes = dict[str, tuple[int, ...]]

SAMPLE_RATE = 24_000
"""Hz, of every waveform."""
N_FFT = 1024
"""Samples of one STFT frame and of its window."""
HOP = N_FFT // 4
"""Samples from one mel frame to the next."""
NUM_BINS = N_FFT // 2 + 1
FRAMES_PER_STEP = 2
"""Mel frames of one GPT step."""
SAMPLES_PER_STEP = FRAMES_PER_STEP * HOP

LEVELS = 5
"""Values of one quantised number."""
DIGITS = 4
"""Numbers in one code."""
NUM_CODES = LEVELS**DIGITS
GROUPS = 2
RESIDUALS = 2
NUM_CODEBOOKS = GROUPS * RESIDUALS
NUM_AUDIO_TOKENS = NUM_CODES + 1
"""Codes of one codebook and the end token."""

EDGE_KERNEL = 3
"""Taps of the convolutions around the blocks."""
BLOCK_KERNEL = 7
"""Taps of the depthwise convolution of a block and of the Vocos input convolution."""
STACK_DILATION = 2
"""Dilation of the depthwise convolutions of Decoder and DVAE (Vocos: 1)."""
DOWN_KERNEL = 4
"""Taps of the DVAE convolution that halves the frame rate."""
NORM_EPS = 1e-6
"""LayerNorm epsilon of Decoder, DVAE and Vocos."""

TENSOR_FILES = {
    "Decoder": "asset/Decoder.safetensors",
    "DVAE": "asset/DVAE.safetensors",
    "Embed": "asset/Embed.safetensors",
    "Vocos": "asset/Vocos.safetensors",
    "gpt": "asset/gpt/model.safetensors",
}
CONFIG_FILE = "asset/gpt/config.json"
TOKENIZER_FILE = "asset/tokenizer/tokenizer.json"
UNTRAINED_FILE = "UNTRAINED"
UNUSED_GPT_TENSOR = "embed_tokens.weight"
"""Stored by the published file, used by nothing."""

SPECIAL_TOKENS = (
    *("[Sasr]", "[Pasr]", "[Easr]", "[Stts]", "[Ptts]", "[Etts]", "[Sbreak]", "[Pbreak]"),
    *("[Ebreak]", "[uv_break]", "[v_break]", "[lbreak]", "[llbreak]", "[undefine]", "[laugh]"),
    *("[spk_emb]", "[empty_spk]", "[music]", "[pure]"),
    *(f"[break_{i}]" for i in range(8)),
    *(f"[laugh_{i}]" for i in range(3)),
    *(f"[oral_{i}]" for i in range(10)),
    *(f"[speed_{i}]" for i in range(10)),
)
"""The control tokens, in the order of their ids, after the base vocabulary."""


@dataclass(frozen=True, slots=True)
class GptSizes:
    """Sizes and constants of the Llama network and its embeddings."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    head_dim: int
    num_codebooks: int
    num_audio_tokens: int
    num_text_tokens: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float

    @property
    def attention_size(self) -> int:
        """Width of q, of k and of v: heads times head size."""
        return self.num_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class StackSizes:
    """Sizes of one convolution stack (Decoder, DVAE encoder, DVAE decoder)."""

    input_channels: int
    bottleneck: int
    width: int
    inner: int
    output_channels: int
    num_layers: int


@dataclass(frozen=True, slots=True)
class DvaeSizes:
    """Sizes of the DVAE: mel bins, width of the down-sampled features, and its two stacks."""

    num_mels: int
    dim: int
    encoder: StackSizes
    decoder: StackSizes


@dataclass(frozen=True, slots=True)
class VocosSizes:
    """Sizes of the Vocos backbone."""

    num_mels: int
    width: int
    inner: int
    num_layers: int


def gpt_tensors(sizes: GptSizes) -> Shapes:
    """Return the names and shapes of gpt/model.safetensors, without the unused embedding."""
    hidden, attention, inner = sizes.hidden_size, sizes.attention_size, sizes.intermediate_size
    shapes: Shapes = {}
    for layer in range(sizes.num_layers):
        prefix = f"layers.{layer}."
        for name in "qkv":
            shapes[f"{prefix}self_attn.{name}_proj.weight"] = (attention, hidden)
        shapes[f"{prefix}self_attn.o_proj.weight"] = (hidden, attention)
        shapes[f"{prefix}mlp.gate_proj.weight"] = (inner, hidden)
        shapes[f"{prefix}mlp.up_proj.weight"] = (inner, hidden)
        shapes[f"{prefix}mlp.down_proj.weight"] = (hidden, inner)
        shapes[f"{prefix}input_layernorm.weight"] = (hidden,)
        shapes[f"{prefix}post_attention_layernorm.weight"] = (hidden,)
    shapes["norm.weight"] = (hidden,)
    return shapes


def embed_tensors(sizes: GptSizes) -> Shapes:
    """Return the names and shapes of Embed.safetensors: embeddings and weight-normed heads."""
    hidden = sizes.hidden_size
    rows = {"text": sizes.num_text_tokens}
    rows.update({f"code.{i}": sizes.num_audio_tokens for i in range(sizes.num_codebooks)})
    shapes: Shapes = {}
    for name, count in rows.items():
        shapes[f"emb_{name}.weight"] = (count, hidden)
        norm = f"head_{name}.parametrizations.weight."
        shapes[f"{norm}original0"] = (count, 1)
        shapes[f"{norm}original1"] = (count, hidden)
    return shapes


def _block_tensors(prefix: str, scale: str, width: int, inner: int) -> Shapes:
    return {
        f"{prefix}{scale}": (width,),
        f"{prefix}dwconv.weight": (width, 1, BLOCK_KERNEL),
        f"{prefix}dwconv.bias": (width,),
        f"{prefix}norm.weight": (width,),
        f"{prefix}norm.bias": (width,),
        f"{prefix}pwconv1.weight": (inner, width),
        f"{prefix}pwconv1.bias": (inner,),
        f"{prefix}pwconv2.weight": (width, inner),
        f"{prefix}pwconv2.bias": (width,),
    }


def stack_tensors(prefix: str, sizes: StackSizes) -> Shapes:
    """Return the names and shapes of one convolution stack."""
    shapes: Shapes = {
        f"{prefix}conv_in.0.weight": (sizes.bottleneck, sizes.input_channels, EDGE_KERNEL),
        f"{prefix}conv_in.0.bias": (sizes.bottleneck,),
        f"{prefix}conv_in.2.weight": (sizes.width, sizes.bottleneck, EDGE_KERNEL),
        f"{prefix}conv_in.2.bias": (sizes.width,),
        f"{prefix}conv_out.weight": (sizes.output_channels, sizes.width, 1),
    }
    for layer in range(sizes.num_layers):
        block = f"{prefix}decoder_block.{layer}."
        shapes.update(_block_tensors(block, "weight", sizes.width, sizes.inner))
    return shapes


def decoder_tensors(sizes: StackSizes, num_mels: int) -> Shapes:
    """Return the names and shapes of Decoder.safetensors."""
    return {
        "coef": (1, num_mels, 1),
        **stack_tensors("decoder.", sizes),
        "out_conv.weight": (num_mels, sizes.output_channels, EDGE_KERNEL),
    }


def dvae_tensors(sizes: DvaeSizes) -> Shapes:
    """Return the names and shapes of DVAE.safetensors."""
    dim, mels = sizes.dim, sizes.num_mels
    shapes: Shapes = {
        "coef": (1, mels, 1),
        "downsample_conv.0.weight": (dim, mels, EDGE_KERNEL),
        "downsample_conv.0.bias": (dim,),
        "downsample_conv.2.weight": (dim, dim, DOWN_KERNEL),
        "downsample_conv.2.bias": (dim,),
        "preprocessor_mel.mel_spec.spectrogram.window": (N_FFT,),
        "preprocessor_mel.mel_spec.mel_scale.fb": (NUM_BINS, mels),
        **stack_tensors("encoder.", sizes.encoder),
        **stack_tensors("decoder.", sizes.decoder),
        "out_conv.weight": (mels, sizes.decoder.output_channels, EDGE_KERNEL),
    }
    features = sizes.encoder.output_channels // GROUPS
    for group in range(GROUPS):
        prefix = f"vq_layer.quantizer.rvqs.{group}."
        shapes[f"{prefix}project_in.weight"] = (DIGITS, features)
        shapes[f"{prefix}project_in.bias"] = (DIGITS,)
        shapes[f"{prefix}project_out.weight"] = (features, DIGITS)
        shapes[f"{prefix}project_out.bias"] = (features,)
    return shapes


def vocos_tensors(sizes: VocosSizes) -> Shapes:
    """Return the names and shapes of Vocos.safetensors."""
    width = sizes.width
    shapes: Shapes = {
        "feature_extractor.mel_spec.spectrogram.window": (N_FFT,),
        "feature_extractor.mel_spec.mel_scale.fb": (NUM_BINS, sizes.num_mels),
        "backbone.embed.weight": (width, sizes.num_mels, BLOCK_KERNEL),
        "backbone.embed.bias": (width,),
        "backbone.norm.weight": (width,),
        "backbone.norm.bias": (width,),
    }
    for layer in range(sizes.num_layers):
        block = f"backbone.convnext.{layer}."
        shapes.update(_block_tensors(block, "gamma", width, sizes.inner))
    shapes.update(
        {
            "backbone.final_layer_norm.weight": (width,),
            "backbone.final_layer_norm.bias": (width,),
            "head.out.weight": (2 * NUM_BINS, width),
            "head.out.bias": (2 * NUM_BINS,),
            "head.istft.window": (N_FFT,),
        }
    )
    return shapes


def context_steps(stack_layers: int, vocos_layers: int) -> int:
    """Return how many GPT steps on each side a sample depends on (52 at the published sizes).

    The two stacks see `radius` mel frames on each side; the samples of step t come from the
    frames 2t - 1 ... 2t + 3, and two frames are one step.
    """
    edge, half = EDGE_KERNEL // 2, BLOCK_KERNEL // 2
    radius = 3 * edge + stack_layers * STACK_DILATION * half + (1 + vocos_layers) * half
    return (radius + 3) // FRAMES_PER_STEP
