"""The loop of every training stage: schedule, saving, resuming, the log of losses.

What a step draws depends on the seed and the step's number alone, so a run that was interrupted and
resumed computes what an uninterrupted one does.
"""

from __future__ import annotations

import json
import math
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from files import atomic_path
from torch import Tensor, nn

from train_voice.stage_folder import alone_in

Losses = Mapping[str, float]

STATE_FILE = "state.pt"
LOG_FILE = "losses.jsonl"
LOG_EVERY = 25
"""Steps of which one line of the log is the mean."""
SAVE_SECONDS = 60.0
MAX_GRADIENT = 1.0
WEIGHT_DECAY = 0.02
LAST_RATE = 0.02
"""The learning rate of the last step, as a part of the highest one."""
_CPU = torch.cpu.get_capabilities()


class Interrupted(Exception):
    """SIGINT or SIGTERM came; everything done so far is saved."""


class StateError(RuntimeError):
    """The saved state of a stage is missing or damaged; the message names the file."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a stage trains, and at which rates: warm-up, constant, decay to nearly nothing.

    The rate before the decay does not depend on how many steps follow, so a stage can be given more
    steps later and loses nothing.
    """

    steps: int
    rate: float
    warmup: int = 100
    decay: float = 0.4
    """Part of the steps in which the rate falls, as a cosine."""

    def at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        decay_steps = max(1, round(self.steps * self.decay))
        done = min(1.0, max(0.0, (step - self.steps + decay_steps) / decay_steps))
        falling = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * done))
        return self.rate * min(1.0, (step + 1) / self.warmup) * falling


@dataclass(frozen=True, slots=True)
class Draws:
    """The random numbers of one step; torch's own are seeded likewise."""

    step: int
    rng: np.random.Generator


class Trainee:
    """Modules by name, an optimiser each; all are saved and restored together.

    Args:
        modules: what is trained.
        rate_factors: by name, where a module's learning rate is not the schedule's.
    """

    def __init__(
        self, modules: Mapping[str, nn.Module], rate_factors: Mapping[str, float] | None = None
    ) -> None:
        self._modules, self._rate_factors = modules, rate_factors or {}
        self._optimizers = {name: _optimizer_of(module) for name, module in modules.items()}

    def set_rate(self, rate: float) -> None:
        """Give every optimiser this learning rate."""
        for name, optimizer in self._optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = rate * self._rate_factors.get(name, 1.0)

    def update(self, loss: Tensor, *names: str) -> None:
        """Take one step of these modules down the loss, each gradient no longer than MAX_GRADIENT.

        Args:
            loss: a number.
            names: all modules if there are none.
        """
        chosen = names or tuple(self._modules)
        for name in chosen:
            self._optimizers[name].zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for name in chosen:
            nn.utils.clip_grad_norm_(self._modules[name].parameters(), MAX_GRADIENT)
            self._optimizers[name].step()

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on."""
        return {
            "modules": {name: module.state_dict() for name, module in self._modules.items()},
            "optimizers": [each.state_dict() for each in self._optimizers.values()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of `state`."""
        for name, module in self._modules.items():
            module.load_state_dict(state["modules"][name])
        optimizers = self._optimizers.values()
        for optimizer, values in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(values)


def mixed_precision() -> torch.autocast:
    """Return a context whose matrices are multiplied in bfloat16, where this processor can."""
    has_bfloat16 = _CPU.get("avx512_bf16", False) or _CPU.get("amx_bf16", False)
    return torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16)


def _optimizer_of(module: nn.Module) -> torch.optim.Optimizer:
    """Return an AdamW for all parameters; weight decay for matrices only."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    # fused: 0.545 s instead of 0.599 for a step of the token model, one thread, Vocos beside it
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)


def train(
    folder: Path,
    trainee: Trainee,
    schedule: Schedule,
    seed: int,
    step_once: Callable[[Draws], Losses],
    say: Callable[[str], None] = print,
) -> None:
    """Train to the schedule's end, from where an earlier call stopped.

    Args:
        folder: holds the stage's state and log.
        trainee: what is trained.
        schedule: of learning rates.
        seed: of all random numbers.
        step_once: takes one step, forward to optimiser, and returns its losses.
        say: is told of the progress.

    Raises:
        Interrupted: a signal asked to stop; the state is saved.
        Busy: another process works in this folder.
        StateError: what an earlier call saved is damaged.
    """
    with alone_in(folder), _stop_signals() as stop:
        first = _restore(folder, trainee)
        if first >= schedule.steps:
            say(f"{folder.name}: {first} steps are done already")
        log = _Log(folder / LOG_FILE, first)
        saved = time.monotonic()
        for step in range(first, schedule.steps):
            trainee.set_rate(schedule.at(step))
            torch.manual_seed(_step_seed(seed, step))
            draws = Draws(step, np.random.default_rng(_step_seed(seed, step)))
            line = log.add(step, step_once(draws), schedule.at(step))
            if line:
                say(f"{folder.name}: step {step + 1}/{schedule.steps} {line}")
            last = step + 1 == schedule.steps
            if stop or last or time.monotonic() - saved > SAVE_SECONDS:
                save(folder, trainee, step + 1)
                saved = time.monotonic()
            if stop:
                raise Interrupted(f"{folder.name} after step {step + 1}, saved")


def save(folder: Path, trainee: Trainee, step: int) -> None:
    """Write the state of a stage of which `step` steps are done."""
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / STATE_FILE) as path:
        torch.save({"step": step, **trainee.state()}, path)


def trained_steps(folder: Path) -> int:
    """Return how many steps of a stage are done and saved."""
    return int(_state_of(folder, mmap=True)["step"]) if (folder / STATE_FILE).exists() else 0


def load_module(folder: Path, name: str, module: nn.Module) -> None:
    """Load one module of a stage's saved state, and switch it to evaluation.

    Raises:
        StateError: it is missing or damaged.
    """
    state = _state_of(folder)
    module.load_state_dict(state["modules"][name])
    module.eval()


def read_log(folder: Path) -> list[dict[str, float]]:
    """Return the lines of a stage's log."""
    path = folder / LOG_FILE
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    # a disk that was full leaves half a line at the end
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _step_seed(seed: int, step: int) -> int:
    return seed * 1_000_003 + step


def _restore(folder: Path, trainee: Trainee) -> int:
    if not (folder / STATE_FILE).exists():
        return 0
    state = _state_of(folder)
    trainee.restore(state)
    return int(state["step"])


def _state_of(folder: Path, mmap: bool = False) -> dict[str, Any]:
    path = folder / STATE_FILE
    if not path.exists():
        raise StateError(f"{path} is missing: run {folder.name} first")
    try:
        state: dict[str, Any] = torch.load(path, mmap=mmap)
    except (EOFError, OSError, RuntimeError, UnpicklingError) as error:
        raise StateError(f"{path} is damaged: {error}") from error
    return state


class _Log:
    """Means of losses, a line of JSON per LOG_EVERY steps."""

    def __init__(self, path: Path, first: int) -> None:
        kept = [line for line in read_log(path.parent) if line["step"] <= first]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        self._path = path
        self._values: dict[str, list[float]] = defaultdict(list)
        self._steps, self._started = 0, time.monotonic()

    def add(self, step: int, losses: Losses, rate: float) -> str:
        """Note the losses of a step; return a line for people when one was written."""
        for name, value in losses.items():
            if not math.isfinite(value):
                raise FloatingPointError(f"{self._path}: loss {name} is {value} at step {step}")
            self._values[name].append(value)
        self._steps += 1
        if (step + 1) % LOG_EVERY:
            return ""
        means = {name: round(float(np.mean(v)), 5) for name, v in self._values.items()}
        seconds = time.monotonic() - self._started
        line = {"step": step + 1, "rate": rate, "seconds": round(seconds, 1), **means}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        pace = seconds / self._steps
        self._values.clear()
        self._steps, self._started = 0, time.monotonic()
        return f"{pace:.2f} s/step " + " ".join(
            f"{name} {value:.3f}" for name, value in means.items()
        )


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Yield a list that is no longer empty once SIGINT or SIGTERM came."""
    came: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield came
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def scalar(value: Tensor) -> float:
    """Return a loss as a number."""
    return float(value.detach())
