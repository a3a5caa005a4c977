#!/usr/bin/env bash
# Checks the torch runner on one CUDA GPU in at most six minutes: kernels, published values, batch
# invariance, CUDA graphs, speed against the memory's bandwidth. The last line is one JSON object; the
# exit status is 0 if everything held.
#
#   tests/gpu/run.sh                       installs requirements.txt with pip if anything is missing
#   TORCH_TEST_DEVICE=cpu tests/gpu/run.sh tries the script itself, at tiny size
#
# Without a network, pip's own settings PIP_NO_INDEX and PIP_FIND_LINKS name a folder of wheels.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}

if ! "${python}" -c "import numpy, onnx, onnxruntime, pytest, pytest_timeout, safetensors, tokenizers, torch, triton"; then
    "${python}" -m pip install --quiet --requirement tests/gpu/requirements.txt
fi
export PYTHONPATH="${PWD}/model_repository/chattts_gpt/1:${PWD}/tests:${PWD}/build"
exec "${python}" tests/gpu/check.py
