"""What listeners get: the rows Experience, Traffic and Errors."""

from __future__ import annotations

from panels import Panel, Query, Row, quantiles

_FIRST_AUDIO = "chattts_time_to_first_audio_seconds"

EXPERIENCE = Row(
    "Experience",
    (
        Panel(
            "First audio of streams",
            "s",
            "From the arrival of a request to its first samples. Voice agents notice 0.5 s.",
            quantiles(_FIRST_AUDIO, "", '<v>,mode="stream"'),
            limit=1,
        ),
        Panel(
            "Whole utterance",
            "s",
            "From the arrival of a request to its last samples; grows with the length of the text.",
            quantiles("tts_latency_seconds", " {{quant}}", "<v>", "quant"),
        ),
        Panel(
            "Real-time factor",
            "short",
            "Seconds of work for one second of audio. Above 1 no listener can keep up.",
            quantiles("chattts_real_time_factor", "", "<v>"),
            limit=1,
        ),
        Panel(
            "Gap between pieces",
            "s",
            "Between two pieces of a stream; heard where it is longer than the audio in hand.",
            quantiles("chattts_chunk_gap_seconds", "", "<v>"),
        ),
        Panel(
            "Streams that ran dry",
            "percentunit",
            "Share of streams whose listener, who began with the first piece, heard a hole.",
            (
                Query(
                    "sum(rate(chattts_underruns_total{<v>}[r]))"
                    f' / sum(rate({_FIRST_AUDIO}_count{{<v>,mode="stream"}}[r]))',
                    "share",
                ),
            ),
            limit=0.01,
        ),
        Panel(
            "Silence from running dry",
            "s",
            "Seconds of holes per second, of all listeners together.",
            (Query("sum(rate(chattts_underrun_seconds_total{<v>}[r]))", "seconds per second"),),
        ),
    ),
)

TRAFFIC = Row(
    "Traffic",
    (
        Panel(
            "Requests by result",
            "reqps",
            "OK, or the error code that the caller got.",
            (Query("sum by (code) (rate(chattts_requests_total{<v>}[r]))", "{{code}}"),),
        ),
        Panel(
            "Requests by how they ended",
            "reqps",
            "eos: it has said everything; length, deadline: cut off; none: an error.",
            (
                Query(
                    "sum by (finish_reason) (rate(chattts_requests_total{<v>}[r]))",
                    "{{finish_reason}}",
                ),
            ),
        ),
        Panel(
            "Requests in the server",
            "short",
            "Being spoken, and waiting for an engine by priority (1 first).",
            (
                Query(
                    "sum by (version) (chattts_running_requests{<v>})",
                    "spoken by version {{version}}",
                ),
                Query(
                    "sum by (priority) (chattts_requests_waiting{<v>})",
                    "waiting, priority {{priority}}",
                ),
            ),
        ),
        Panel(
            "Audio made",
            "short",
            "Seconds of audio per second: how many listeners could be served at once.",
            (
                Query(
                    "sum by (instance) (rate(chattts_audio_seconds_total{<v>}[r]))", "{{instance}}"
                ),
            ),
        ),
        Panel(
            "Characters",
            "cps",
            "Characters of the texts of requests, per second.",
            (Query("sum by (instance) (rate(chattts_characters_total{<v>}[r]))", "{{instance}}"),),
        ),
        Panel(
            "What is served",
            "short",
            "Checkpoint, precision and version. Untrained weights speak noise.",
            (
                Query(
                    "max by (instance, version, checkpoint, precision, untrained)"
                    " (chattts_info{<v>}) > 0",
                    "{{checkpoint}}",
                ),
            ),
            is_table=True,
        ),
    ),
)

ERRORS = Row(
    "Errors",
    (
        Panel(
            "Failed or refused",
            "percentunit",
            "Share of requests with INTERNAL or UNAVAILABLE. Red: what pages within an hour.",
            (
                Query(
                    "instance:chattts_request_errors:ratio_rate5m{<i>}", "5 minutes, {{instance}}"
                ),
                Query("instance:chattts_request_errors:ratio_rate1h{<i>}", "1 hour, {{instance}}"),
                Query("instance:chattts_request_errors:ratio_rate6h{<i>}", "6 hours, {{instance}}"),
            ),
            limit=14.4 * 0.005,
        ),
        Panel(
            "Errors by code",
            "reqps",
            "INVALID_ARG and CANCELLED are the callers' own; UNAVAILABLE may come again.",
            (Query('sum by (code) (rate(chattts_requests_total{<v>,code!="OK"}[r]))', "{{code}}"),),
        ),
        Panel(
            "Warnings",
            "short",
            "Per second, by code: words that could not be said, and the like.",
            (Query("sum by (code) (rate(chattts_warnings_total{<v>}[r]))", "{{code}}"),),
        ),
        Panel(
            "Objections of the quality guard",
            "short",
            "Utterances per second by reason: silent, clipped, too short or long, looping, NaN.",
            (Query("sum by (reason) (rate(chattts_quality_total{<v>}[r]))", "{{reason}}"),),
        ),
        Panel(
            "Restarts and deaths",
            "short",
            "Servers that the supervisor started again; engine processes that were replaced.",
            (
                Query(
                    "max by (instance) (chattts_server_restarts{<v>})", "restarts of {{instance}}"
                ),
                Query(
                    "sum by (instance) (chattts_engine_deaths_total{<v>})",
                    "engine deaths in {{instance}}",
                ),
            ),
        ),
        Panel(
            "Alerts",
            "short",
            "How many fire; Prometheus lists them under /alerts.",
            (Query('count(ALERTS{alertstate="firing"}) or vector(0)', "firing"),),
            limit=1,
        ),
    ),
)
