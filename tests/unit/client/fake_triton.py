"""A scripted Triton server in this process: the real gRPC and HTTP protocols, invented answers."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import deserialize_bytes_tensor, np_to_triton_dtype, serialize_byte_tensor
from unit.client.fake_answers import (
    BrokenCall,
    Failure,
    Inputs,
    Outputs,
    Request,
    Script,
    health_answer,
    utterance,
)

HEALTH = '{"health": true}'
HTTP_STATUSES = {"UNAVAILABLE": 503, "NOT_FOUND": 404, "PERMISSION_DENIED": 403}


class FakeTriton(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc] # untyped base
    """Answers each request by `script` and records what it was asked."""

    def __init__(self) -> None:
        self.script: Script = lambda inputs, request: iter(utterance())
        self.is_ready = True
        self.versions = {"chattts": ["1", "2"], "chattts_gpt": ["2"], "chattts_vocoder": [""]}
        """Model name to what is served of it; an empty one: it has failed to load."""
        self.key = ""
        """What every question must carry in its headers, if anything."""
        self.facts: dict[str, object] = {}
        """What the health answer says besides."""
        self.num_connections = 0
        """Over HTTP."""
        self.hangs_up = False
        """Whether each HTTP connection ends after one answer, without notice."""
        self.requests: list[Request] = []
        self.inputs: list[Inputs] = []

    def answer(self, inputs: Inputs, request: Request) -> Iterator[Outputs]:
        """Record a request and start its script; health is not recorded."""
        self.check_key(request.headers)
        if inputs.get("options") == HEALTH:
            return self._answer_health(request)
        self.requests.append(request)
        self.inputs.append(inputs)
        return self.script(inputs, request)

    def _stop(self, stop_key: str) -> None:
        for request in self.requests:
            if request.stop_key == stop_key:
                request.is_stopped = True
                request.cancelled.set()

    def _answer_health(self, request: Request) -> Iterator[Outputs]:
        if not self.is_ready:
            message = "the first speech has not ended; try again in 1 s"
            raise Failure("UNAVAILABLE", message)
        yield health_answer(model_version=request.version, **self.facts)

    def check_key(self, headers: Mapping[str, str]) -> None:
        """Refuse a question without the key, as a restricted API does."""
        if self.key and headers.get("key") != self.key:
            raise Failure("UNAVAILABLE", "This protocol is restricted, expecting header 'key'")

    def metadata(self, model: str) -> list[str]:
        """The served versions of a model."""
        if model not in self.versions:
            raise Failure("NOT_FOUND", f"Request for unknown model: '{model}' is not found")
        if not any(self.versions[model]):
            message = f"Request for unknown model: '{model}' has no available versions"
            raise Failure("UNAVAILABLE", message)
        return self.versions[model]

    def ServerLive(self, message: Any, context: grpc.ServicerContext) -> Any:
        self._check_caller(context)
        return service_pb2.ServerLiveResponse(live=True)

    def ServerMetadata(self, message: Any, context: grpc.ServicerContext) -> Any:
        self._check_caller(context)
        return service_pb2.ServerMetadataResponse(name="triton", version="2.51.0")

    def ModelMetadata(self, message: Any, context: grpc.ServicerContext) -> Any:
        try:
            versions = self.metadata(message.name)
        except Failure as failure:
            context.abort(grpc.StatusCode[failure.code], str(failure))
        return service_pb2.ModelMetadataResponse(name=message.name, versions=versions)

    def ModelReady(self, message: Any, context: grpc.ServicerContext) -> Any:
        return service_pb2.ModelReadyResponse(ready=self.is_ready)

    def _check_caller(self, context: grpc.ServicerContext) -> None:
        try:
            self.check_key(dict(context.invocation_metadata()))
        except Failure as failure:
            context.abort(grpc.StatusCode[failure.code], str(failure))

    def ModelStreamInfer(self, messages: Any, context: grpc.ServicerContext) -> Any:
        for message in messages:
            if message.parameters["stop"].string_param:
                self._stop(message.parameters["stop"].string_param)
                yield service_pb2.ModelStreamInferResponse()
                continue
            headers = dict(context.invocation_metadata())
            request = Request(message.id, message.model_name, message.model_version, headers)
            request.stop_key = message.parameters["stop_key"].string_param
            context.add_callback(request.cancelled.set)
            try:
                for response in self.answer(_grpc_inputs(message), request):
                    yield service_pb2.ModelStreamInferResponse(infer_response=_encode(response))
            except BrokenCall as failure:
                context.abort(grpc.StatusCode[failure.code], str(failure))
            except Failure as failure:
                has_code = message.parameters["code_in_errors"].bool_param and failure.code
                text = f"{failure.code}: {failure}" if has_code else str(failure)
                yield service_pb2.ModelStreamInferResponse(error_message=text)


def serve_grpc(
    fake: FakeTriton, credentials: grpc.ServerCredentials | None = None
) -> tuple[grpc.Server, str]:
    """Start a gRPC server for `fake`; returns it and its HOST:PORT."""
    server = grpc.server(ThreadPoolExecutor(8))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(fake, server)
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    return server, f"127.0.0.1:{port}"


def serve_http(
    fake: FakeTriton, context: ssl.SSLContext | None = None
) -> tuple[ThreadingHTTPServer, str]:
    """Start an HTTP server for `fake`; returns it and its HOST:PORT."""
    handler = type("Handler", (_HttpHandler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server, f"127.0.0.1:{server.server_address[1]}"


class _HttpHandler(BaseHTTPRequestHandler):
    fake: FakeTriton
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.removeprefix("/v2")
        try:
            self.fake.check_key(self.headers)
            if path == "":
                self._reply_json(200, {"name": "triton", "version": "2.51.0"})
            elif path == "/health/live":
                self._reply(200, b"")
            elif path.endswith("/ready"):
                self._reply(200 if self.fake.is_ready else 400, b"")
            else:
                versions = self.fake.metadata(path.removeprefix("/models/"))
                self._reply_json(200, {"versions": versions})
        except Failure as failure:
            self._reply_json(HTTP_STATUSES[failure.code], {"error": str(failure)})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/generate"):
            self._generate(json.loads(body))
            return
        header_length = int(self.headers["Inference-Header-Content-Length"])
        header = json.loads(body[:header_length])
        _, model, *version = self.path.removeprefix("/v2/").removesuffix("/infer").split("/")
        request = Request(header["id"], model, "".join(version[1:]), dict(self.headers))
        try:
            (response,) = self.fake.answer(_http_inputs(header, body[header_length:]), request)
        except Failure as failure:
            code = failure.code
            status = int(code) if code.isdecimal() else HTTP_STATUSES[code]
            self._reply_json(status, {"error": str(failure)})
            return
        names = [
            {
                "name": name,
                "datatype": np_to_triton_dtype(array.dtype),
                "shape": list(array.shape),
                "parameters": {"binary_data_size": len(_raw(array))},
            }
            for name, array in response.items()
        ]
        answer = json.dumps({"model_name": model, "outputs": names}).encode()
        binary = b"".join(_raw(array) for array in response.values())
        self._reply(200, answer + binary, ("Inference-Header-Content-Length", str(len(answer))))

    def _generate(self, inputs: Inputs) -> None:
        version = self.path.rpartition("/versions/")[2].removesuffix("/generate")
        request = Request("", "chattts", version if version.isdecimal() else "", self.headers)
        try:
            (response,) = self.fake.answer(inputs, request)
            self._reply_json(200, {"metadata": response["metadata"][0].decode()})
        except Failure as failure:
            self._reply_json(HTTP_STATUSES[failure.code], {"error": str(failure)})

    def _reply_json(self, status: int, value: object) -> None:
        self._reply(status, json.dumps(value).encode())

    def _reply(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_one_request(self) -> None:
        super().handle_one_request()
        self.close_connection = self.close_connection or self.fake.hangs_up

    def handle(self) -> None:
        self.fake.num_connections += 1
        with contextlib.suppress(ConnectionError):  # the caller has left
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""


def _encode(response: Outputs) -> Any:
    message = service_pb2.ModelInferResponse()
    for name, array in response.items():
        datatype = np_to_triton_dtype(array.dtype)
        message.outputs.add(name=name, datatype=datatype, shape=array.shape)
        message.raw_output_contents.append(_raw(array))
    return message


def _raw(array: NDArray[Any]) -> bytes:
    if array.dtype == np.object_:
        return bytes(serialize_byte_tensor(array).item())
    return array.tobytes()


def _grpc_inputs(message: Any) -> Inputs:
    tensors = zip(message.inputs, message.raw_input_contents, strict=True)
    return {tensor.name: _value(tensor.datatype, raw) for tensor, raw in tensors}


def _http_inputs(header: dict[str, Any], binary: bytes) -> Inputs:
    inputs, offset = {}, 0
    for tensor in header["inputs"]:
        size = tensor["parameters"]["binary_data_size"]
        inputs[tensor["name"]] = _value(tensor["datatype"], binary[offset : offset + size])
        offset += size
    return inputs


def _value(datatype: str, raw: bytes) -> Any:
    if datatype == "BYTES":
        return deserialize_bytes_tensor(raw)[0].decode()
    kinds = {"BOOL": np.bool_, "FP32": np.float32, "INT32": np.int32, "UINT64": np.uint64}
    (value,) = np.frombuffer(raw, dtype=kinds[datatype]).tolist()
    return value
