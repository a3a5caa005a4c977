# The front door. Each target is a line or two that call a script you could call too.

PYTHON ?= python3
BIN := .venv/bin
CHECKPOINT ?= demo
PRECISION ?= int8
WORK ?= $(HOME)/.cache/chattts-voice$(if $(QUICK),-quick)$(if $(FROM),-more)
# leave torch out with TEST_EXTRAS=test: the tests of the torch runner then skip
TEST_EXTRAS ?= test,torch

.PHONY: help demo serve bench soak loadtest perf score dashboard-preview docs voice test check clean

help: ## What there is
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 19

demo: .venv/.installed-serve ## From nothing to a WAV: install, build, serve, speak
	$(BIN)/python embedded/demo.py --checkpoint $(CHECKPOINT) --precision $(PRECISION)

serve: .venv/.installed-serve ## Build if needed, then serve on 8000 (HTTP), 8001 (gRPC), 8002 (metrics)
	$(BIN)/python build/build_repository.py --checkpoint checkpoints/$(CHECKPOINT) --precision $(PRECISION)
	$(BIN)/python embedded/serve.py

bench: .venv/.installed-bench ## Full size, side by side with a baseline: table, bench-results/report.json, plots
	$(BIN)/python loadtest/bench.py

soak: .venv/.installed-bench ## 20 minutes of mixed and hostile traffic; nothing may grow, fail or be lost
	$(BIN)/python loadtest/soak.py

loadtest: .venv/.installed-load ## Locust at 1 to 64 users: loadtest-results/report.html, table, profile; one JSON line
	$(BIN)/python loadtest/loadtest.py

perf: .venv/.installed-bench ## perf_analyzer on the speech model and the vocoder, 1 to 64 at once; one JSON line
	$(BIN)/python loadtest/perf.py

score: .venv/.installed-score ## FOLDER=…: how good its WAV files sound, estimated; table, one JSON line
	$(BIN)/python loadtest/score.py "$(or $(FOLDER),$(error make score needs FOLDER=…, a folder of WAV files))"

dashboard-preview: .venv/.installed-bench ## docs/dashboard.png: the dashboard of a run, asked from a real Prometheus
	$(BIN)/python loadtest/dashboard_preview.py

docs: .venv/.installed-docs ## api-docs/: the client's reference as web pages, from its docstrings
	$(BIN)/python -W error::UserWarning -m pdoc chattts_client --docformat google --output-directory api-docs

voice: .venv/.installed-train ## Train the small voice, for hours, in WORK; FROM=checkpoints/demo: go on from it; QUICK=1: a try
	$(BIN)/python build/train_voice/__main__.py --work "$(WORK)" $(if $(QUICK),--quick) $(if $(FROM),--from "$(FROM)")

test: .venv/.installed-test ## Unit, parity and real-server tests
	$(BIN)/python -m pytest

check: .venv/.installed-test ## Format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 client # the oldest that its users may have
	$(BIN)/mypy model_repository/chattts/1/model.py
	$(BIN)/mypy model_repository/chattts_unary/1/model.py
	$(BIN)/mypy model_repository/chattts_gpt/1/model.py
	$(BIN)/mypy embedded/backends/onnxruntime/model.py

clean: ## Remove the environment and the built repository; checkpoints stay
	rm -rf .venv model_repository/*/1/weights model_repository/chattts_vocoder/1/model.onnx demo.wav

# constraints.txt pins every package, also the indirect ones.
.venv/.installed-serve: EXTRAS = serve
.venv/.installed-bench: EXTRAS = bench
.venv/.installed-load: EXTRAS = load
.venv/.installed-docs: EXTRAS = docs
.venv/.installed-score: EXTRAS = score
.venv/.installed-train: EXTRAS = train
.venv/.installed-test: EXTRAS = $(TEST_EXTRAS)
.venv/.installed-%: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	touch $@
