"""Who may load and unload models in a running server: whoever can read a file.

A server that may be told to load a model takes the model's files with the call, so everybody who
reaches its port could run code of his own in it. It therefore asks for a secret, a new one at each
start, in a header of the calls.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

HEADER = "chattts-control"
"""HTTP header with the secret; over gRPC it is triton-grpc-protocol-chattts-control."""
FLAGS = ("--model-control-mode=explicit", "--load-model=*", "--strict-readiness=false")
"""All models load at the start; afterwards each one when it is asked for. With strict readiness the
server would not be ready while a version is unloaded, and for ever after one was refused."""

RESTRICTED = "model-repository,logging,trace"
"""What only who can read the secret may change, as the server's flags name it."""

_SECRET_BYTES = 16


def restrict(token_file: Path) -> list[str]:
    """Write a new secret to a file of this user alone; return the flags that ask for it."""
    token = secrets.token_hex(_SECRET_BYTES)
    token_file.unlink(missing_ok=True)
    descriptor = os.open(token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token)
    rule = f"{RESTRICTED}:{HEADER}={token}"
    return [f"--http-restricted-api={rule}", f"--grpc-restricted-protocol={rule}"]
