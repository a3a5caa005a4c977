"""The engine at the published width, sampling as the published package sampled.

Weights come from the formula of the golden vectors (two layers); the noise is the published one,
so the drawn codes must be equal, with the published defaults and with one temperature a codebook.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import gpt_graph
import layout
import numpy as np
import pytest
from artifacts import FORMAT
from chattts_engine import EngineConfig, GenerationRequest, GPTConfig, SamplingParams
from chattts_engine.embeddings import Embeddings
from chattts_engine.engine import Engine
from chattts_engine.onnx_runner import OnnxRunner
from chattts_engine.sampler import Sampler
from engine_runs import Result, run_together
from golden import VECTOR_ARRAYS, VECTOR_CASES, assert_close
from make_checkpoint import full_sizes
from parity.formula import integers, tensors
from upstream_noise import upstream_noise

NUM_LAYERS = 2
SIZES = dataclasses.replace(full_sizes().gpt, num_layers=NUM_LAYERS)
FIRST_CONTROL_ID = SIZES.num_text_tokens - len(layout.SPECIAL_TOKENS)
REFINE_TEMPERATURE = 0.7
REFINE_STEPS = 12


def control_id(token: str) -> int:
    return FIRST_CONTROL_ID + layout.SPECIAL_TOKENS.index(token)


class Model:
    """Runner, embeddings and sizes; an engine is made per noise."""

    def __init__(self, folder: Path) -> None:
        layers = tensors("gpt", layout.gpt_tensors(SIZES))
        embed = tensors("Embed", layout.embed_tensors(SIZES))
        (folder / "gpt.onnx").write_bytes(gpt_graph.write_gpt(SIZES, layers, "fp32"))
        (folder / "code_head.onnx").write_bytes(gpt_graph.write_code_head(SIZES, embed))
        (folder / "text_head.onnx").write_bytes(gpt_graph.write_text_head(SIZES, embed))
        facts = {"checkpoint": "formula", "untrained": True, "precision": "fp32", "runner": "onnx"}
        config = folder / "gpt_config.json"
        config.write_text(json.dumps({"format": FORMAT, **facts, **dataclasses.asdict(SIZES)}))
        self.gpt = GPTConfig.from_file(config)
        self.config = EngineConfig()
        self.runner = OnnxRunner(folder, self.gpt, self.config)
        code = [embed[f"emb_code.{i}.weight"] for i in range(SIZES.num_codebooks)]
        text = embed["emb_text.weight"]
        self.embeddings = Embeddings(text, np.stack(code), control_id("[spk_emb]"))

    def run(self, requests: list[GenerationRequest], sampler: Sampler) -> dict[str, Result]:
        """Run requests together through a new engine with this sampler."""
        engine = Engine(
            self.config, self.gpt, self.runner, self.embeddings, control_id("[Ebreak]"), sampler
        )
        return run_together(engine, requests)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(tmp_path_factory.mktemp("weights"))


@pytest.mark.parametrize(
    "case", ["gpt_plain", "gpt_plain_single", "gpt_nospk", "gpt_prompt", "gpt_tempvec"]
)
def test_sampled_codes_equal_the_published_ones(model: Model, case: str) -> None:
    golden = VECTOR_CASES[case]
    requests = []
    for row, ids in enumerate(golden["token_ids_row"]):
        real_ids = np.array(ids)[np.array(golden["attention"][row], bool)]
        prompt_codes = None
        if case == "gpt_prompt":
            prompt_codes = integers("input:prompt", layout.NUM_CODES, 4, 7).T.astype(np.int32)
            real_ids = real_ids[: -len(prompt_codes)]
        requests.append(
            GenerationRequest(
                id=str(row),
                mode="code",
                prompt_token_ids=real_ids,
                sampling=SamplingParams(
                    seed=row,  # upstream_noise reads the batch row from it
                    temperature=tuple(golden["temperature"]),
                    top_p=golden["top_p"],
                    top_k=golden["top_k"],
                    repetition_penalty=golden["penalty"],
                    min_new_tokens=golden["min_new"],
                    max_new_tokens=golden["max_new"],
                ),
                speaker_embedding=None if case == "gpt_nospk" else VECTOR_ARRAYS["spk_f16"],
                audio_prompt_codes=prompt_codes,
            )
        )
    noise = upstream_noise(golden["seed"], len(requests), SIZES.num_codebooks, layout.NUM_CODES + 1)
    results = model.run(requests, Sampler(noise))
    for row in range(len(requests)):
        codes, hidden = results[str(row)]
        np.testing.assert_array_equal(codes, golden["codes"][row])
        assert_close(hidden[:8], VECTOR_ARRAYS[f"{case}_hidden_row{row}"])


def test_refined_tokens_equal_the_published_ones(model: Model) -> None:
    golden = VECTOR_CASES["refine"]
    texts = [np.array(row)[3:-1] for row in VECTOR_CASES["gpt_plain"]["token_ids_row"]]
    texts[0] = texts[0][-5:]  # without the left padding of the batch and its control tokens
    tail = [control_id(name) for name in ("[Pbreak]", "[oral_2]", "[laugh_0]", "[break_6]")]
    requests = [
        GenerationRequest(
            id=str(row),
            mode="text",
            prompt_token_ids=np.array([control_id("[Sbreak]"), *text, *tail]),
            sampling=SamplingParams(
                seed=row,
                temperature=(REFINE_TEMPERATURE,),
                repetition_penalty=1.0,
                max_new_tokens=REFINE_STEPS,
            ),
        )
        for row, text in enumerate(texts)
    ]
    noise = upstream_noise(golden["seed"], len(requests), 1, SIZES.num_text_tokens)
    results = model.run(requests, Sampler(noise))
    for row in range(len(requests)):
        assert results[str(row)][0][:, 0].tolist() == golden["ids"][row]
