"""Reasons are found in the logs that real servers wrote."""

from __future__ import annotations

import pytest
from server_log import explain_failure, failure_reasons, has_crashed, has_no_voice

HEAD = """\
I1129 14:03:39.775879 6100 pinned_memory_manager.cc:283] "Pinned memory pool disabled"
E1129 14:03:39.776331 6100 server.cc:241] "CudaDriverHelper has not been initialized."
"""
TAIL = """\
I1129 14:03:39.776540 6100 server.cc:604]
+------------------+------+
| Repository Agent | Path |
+------------------+------+

I1129 14:03:40.114765 6100 server.cc:345] "Timeout 30: Found 0 live models"
error: creating server: Internal - failed to load all models
"""
MODEL_ERROR = r"""
E1129 14:03:40.114220 6100 backend_model.cc:692] "ERROR: Failed to create instance: ValueError: x"
E1129 14:03:40.114321 6100 model_lifecycle.cc:642] "failed to load 'a': ValueError: x\n\nAt:\n  f\n"
"""
CONFIG_ERROR = "[libprotobuf ERROR /build/format.cc:337] Error parsing: 4:43: Unknown value.\n"
LOADER_ERROR = "stub: error while loading shared libraries: libpython3.11.so.1.0: not found\n"
FATAL = "creating server: Internal - failed to load all models"


def test_model_error_is_found_once_with_its_line_breaks() -> None:
    reasons = failure_reasons(HEAD + MODEL_ERROR + TAIL)
    assert reasons == [
        "failed to load 'a': ValueError: x\n\nAt:\n  f",
        FATAL,
    ]


def test_configuration_error_is_found() -> None:
    reasons = failure_reasons(HEAD + CONFIG_ERROR + TAIL)
    assert reasons[0] == "Error parsing: 4:43: Unknown value."


def test_missing_library_is_found() -> None:
    assert failure_reasons(LOADER_ERROR) == [LOADER_ERROR.strip()]


def test_explanation_ends_with_the_log_without_its_tables() -> None:
    explained = explain_failure(HEAD + TAIL)
    assert explained.startswith(FATAL)
    assert "Repository Agent" not in explained
    assert "Timeout 30" not in explained
    assert "Pinned memory pool" in explained


def test_empty_log_is_said_to_be_empty_of_errors() -> None:
    assert explain_failure("").startswith("no error in its log")


@pytest.mark.parametrize(
    "line",
    [
        "terminate called after throwing an instance of 'boost::interprocess::lock_exception'",
        "Signal (11) received.",
    ],
)
def test_a_crash_is_told_from_a_refusal(line: str) -> None:
    assert has_crashed(f"{HEAD}{line}\n")
    assert not has_crashed(HEAD + MODEL_ERROR + TAIL)


def test_a_front_that_cannot_speak_is_found_with_its_reason() -> None:
    log = HEAD + "error: chattts: warm-up failed: chattts_gpt: x\n"
    assert has_no_voice(log)
    assert failure_reasons(log) == ["chattts: warm-up failed: chattts_gpt: x"]
    assert not has_no_voice(HEAD + TAIL)
