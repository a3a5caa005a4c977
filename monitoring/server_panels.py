"""What the server does: the rows Engine and KV, Vocoder, Triton and Machine."""

from __future__ import annotations

from panels import Panel, Query, Row, mean, quantiles

_VOCODER = '<i>,model="chattts_vocoder"'
_MICROSECONDS = " / 1e6"

ENGINE = Row(
    "Engine and KV",
    (
        Panel(
            "Tokens",
            "short",
            "Steps of audio (46.9 are one second) and prompt positions, per second.",
            (
                Query("sum(rate(chattts_generated_tokens_total{<v>}[r]))", "generated"),
                Query("sum(rate(chattts_prefilled_tokens_total{<v>}[r]))", "prompt"),
            ),
        ),
        Panel(
            "Engine steps",
            "short",
            "Per second and engine.",
            (
                Query(
                    "sum by (instance, engine) (rate(chattts_engine_steps_total{<v>}[r]))",
                    "{{instance}} engine {{engine}}",
                ),
            ),
        ),
        Panel(
            "Decoded together",
            "short",
            "Sequences in one step of the network.",
            (
                Query(
                    "sum(rate(chattts_decode_batch_size_sum{<v>}[r]))"
                    " / sum(rate(chattts_decode_batch_size_count{<v>}[r]))",
                    "mean",
                ),
                *quantiles("chattts_decode_batch_size", "", "<v>")[1:2],
            ),
        ),
        Panel(
            "KV blocks in use",
            "percentunit",
            "Share of the pool. When it is full, sequences are pre-empted.",
            (
                # of a version that was unloaded all is 0
                Query(
                    "chattts_kv_blocks_used{<v>} / (chattts_kv_blocks_total{<v>} > 0)",
                    "{{instance}} engine {{engine}}",
                ),
            ),
            limit=0.9,
        ),
        Panel(
            "KV fragmentation",
            "percentunit",
            "Share of the positions of used blocks that hold no token.",
            (Query("chattts_kv_fragmentation_ratio{<v>}", "{{instance}} engine {{engine}}"),),
            limit=0.3,
        ),
        Panel(
            "Sequences and pre-emptions",
            "short",
            "Sequences that hold blocks; pre-emptions per second.",
            (
                Query("chattts_sequences_running{<v>}", "running, {{instance}} engine {{engine}}"),
                Query("sum(rate(chattts_preemptions_total{<v>}[r]))", "pre-emptions"),
            ),
        ),
    ),
)

VOCODER = Row(
    "Vocoder",
    (
        Panel(
            "Batch size",
            "short",
            "Calls per execution; Triton batches what arrives together.",
            (
                Query(
                    mean("nv_inference_count", "nv_inference_exec_count", "version", _VOCODER),
                    "version {{version}}",
                ),
            ),
        ),
        Panel(
            "Executions",
            "short",
            "Per second; a call is 24 steps, half a second of audio.",
            (
                Query(f"sum(rate(nv_inference_count{{{_VOCODER}}}[r]))", "calls"),
                Query(f"sum(rate(nv_inference_exec_count{{{_VOCODER}}}[r]))", "executions"),
            ),
        ),
        Panel(
            "Time of a call",
            "s",
            "In the queue, and computing.",
            tuple(
                Query(
                    mean(
                        f"nv_inference_{kind}_duration_us",
                        "nv_inference_request_success",
                        "model",
                        _VOCODER,
                        _MICROSECONDS,
                    ),
                    legend,
                )
                for kind, legend in (("queue", "queue"), ("compute_infer", "computing"))
            ),
        ),
    ),
)

TRITON = Row(
    "Triton",
    (
        Panel(
            "Requests by model",
            "reqps",
            "That Triton counts as successful, inner calls included.",
            (Query("sum by (model) (rate(nv_inference_request_success{<i>}[r]))", "{{model}}"),),
        ),
        Panel(
            "Failures by model",
            "reqps",
            "With Triton's reason.",
            (
                Query(
                    "sum by (model, reason) (rate(nv_inference_request_failure{<i>}[r]))",
                    "{{model}} {{reason}}",
                ),
            ),
        ),
        Panel(
            "Time in Triton's queue",
            "s",
            "Per request. chattts_unary takes four at a time; the others have queues of their own.",
            (
                Query(
                    mean(
                        "nv_inference_queue_duration_us",
                        "nv_inference_request_success",
                        "model",
                        "<i>",
                        _MICROSECONDS,
                    ),
                    "{{model}}",
                ),
            ),
        ),
        Panel(
            "Pending requests",
            "short",
            "Not yet handed to the model.",
            (Query("sum by (model) (nv_inference_pending_request_count{<i>})", "{{model}}"),),
        ),
        Panel(
            "Time of a request",
            "s",
            "From arrival to the last response, mean.",
            (
                Query(
                    mean(
                        "nv_inference_request_duration_us",
                        "nv_inference_request_success",
                        "model",
                        "<i>",
                        _MICROSECONDS,
                    ),
                    "{{model}}",
                ),
            ),
        ),
        Panel(
            "Scrapes",
            "short",
            "1: Prometheus reaches the server.",
            (Query('up{job="chattts",<i>}', "{{instance}}"),),
        ),
    ),
)

MACHINE = Row(
    "Machine",
    (
        Panel(
            "Processor",
            "percentunit",
            "Share of all cores that is busy.",
            (Query("nv_cpu_utilization{<i>}", "{{instance}}"),),
        ),
        Panel(
            "Memory of the processes",
            "bytes",
            "Resident: the front model, and all engines with their KV blocks.",
            (
                Query("sum(chattts_front_resident_memory_bytes{<v>})", "front"),
                Query("sum(chattts_engine_resident_memory_bytes{<v>})", "engines"),
            ),
        ),
        Panel(
            "Memory of the machine",
            "bytes",
            "As Triton sees it.",
            (
                Query("sum(nv_cpu_memory_used_bytes{<i>})", "used"),
                Query("sum(nv_cpu_memory_total_bytes{<i>})", "there is"),
            ),
        ),
        Panel(
            "GPU use",
            "percentunit",
            "Share of the time in which some kernel runs; says little about room left.",
            (Query("nv_gpu_utilization{<i>}", "{{gpu_uuid}}"),),
        ),
        Panel(
            "GPU memory",
            "bytes",
            "Of the whole GPU as Triton sees it, and of the engines with their limits.",
            (
                Query("nv_gpu_memory_used_bytes{<i>}", "used, {{gpu_uuid}}"),
                Query("nv_gpu_memory_total_bytes{<i>}", "there is, {{gpu_uuid}}"),
                Query("chattts_gpu_memory_used_bytes{<v>}", "engine {{engine}}"),
                Query("chattts_gpu_memory_limit_bytes{<v>}", "limit of engine {{engine}}"),
            ),
        ),
        Panel(
            "GPU power",
            "watt",
            "Drawn now.",
            (Query("nv_gpu_power_usage{<i>}", "{{gpu_uuid}}"),),
        ),
    ),
)
