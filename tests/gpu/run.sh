#!/usr/bin/env bash
# Checks the torch runner on one CUDA GPU in at most six minutes: kernels, published values, batch
# invariance, CUDA graphs, speed against the memory's bandwidth. The last line is one JSON object; the
# exit status is 0 if everything held.
#
#   tests/gpu/run.sh                       packages of requirements.txt are installed already
#   WHEELS=/wheels tests/gpu/run.sh        installs what is missing from a folder, without a network
#   TORCH_TEST_DEVICE=cpu tests/gpu/run.sh tries the script itself, at tiny size
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}

if ! "${python}" -c "import numpy, onnx, onnxruntime, pytest, pytest_timeout, safetensors, tokenizers, torch, triton"; then
    "${python}" -m pip install --quiet ${WHEELS:+--no-index --find-links "${WHEELS}"} \
        --requirement tests/gpu/requirements.txt
fi
export PYTHONPATH="${PWD}/model_repository/chattts_gpt/1:${PWD}/tests:${PWD}/build"
exec "${python}" tests/gpu/check.py
