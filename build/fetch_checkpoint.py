"""Download the published ChatTTS checkpoint and verify every file.

    python build/fetch_checkpoint.py
    python build/fetch_checkpoint.py --output /data/chattts

About 1.2 GB; an interrupted download goes on where it stopped, and files that are already right are
left alone. The weights are under CC BY-NC 4.0: not for commercial use.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from files import INTERRUPTED, sha256
from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

REPOSITORY = "2Noise/ChatTTS"
TIMEOUT_S = 5.0
"""For the first answer of the hub: an unreachable one is known in seconds."""
DEFAULT_OUTPUT = Path(__file__).resolve().parent.parent / "checkpoints" / "published"

SHA256 = {
    "asset/Decoder.safetensors": "77aa55e0a977949c4733df3c6f876fa85860d3298cba63295a7bc6901729d4e0",
    "asset/DVAE.safetensors": "1d0b044a8368c0513100a2eca98456b289e6be6a18b7a63be1bcaa315ea874d9",
    "asset/Embed.safetensors": "2ff0be7134934155741b643b74e32fb6bf3eec41257984459b2ed60cdb4c48b0",
    "asset/Vocos.safetensors": "07e5561491cce41f7f90cfdb94b2ff263ff5742c3d89339db99b17ad82cc3f44",
    "asset/gpt/config.json": "0aaa1ecd96c49ad4f473459eb1982fa7ad79fa5de08cde2781bf6ad1f9a0c236",
    "asset/gpt/model.safetensors": (
        "cd0806fd971f52f6a22c923ec64982b305e817bcc41ca83417fcf9141b984a0f"
    ),
    "asset/tokenizer/special_tokens_map.json": (
        "bd0ac9d9bb1657996b5c5fbcaa7d80f8de530d01a283da97f89deae5b1b8d011"
    ),
    "asset/tokenizer/tokenizer_config.json": (
        "43e9d658b554fa5ee8d8e1d763349323bfef1ed7a89c0794220ab8861387d421"
    ),
    "asset/tokenizer/tokenizer.json": (
        "843838a64e121e23e774cc75874c6fe862198d9f7dd43747914633a8fd89c20e"
    ),
}
"""The nine files of the published checkpoint, as its own code verifies them."""


class FetchError(RuntimeError):
    """The checkpoint could not be fetched; the message is one sentence for the user."""


def probe(name: str) -> None:
    """Ask the hub once for a file's metadata, without retries.

    Raises:
        HTTPError, OSError: the hub cannot be reached or refuses.
    """
    get_hf_file_metadata(hf_hub_url(REPOSITORY, name), timeout=TIMEOUT_S)


def download(name: str, output: Path) -> None:
    """Download one file to `output`/`name`, with a progress bar, resuming what is there."""
    hf_hub_download(REPOSITORY, name, local_dir=output, etag_timeout=TIMEOUT_S)


def fetch(output: Path) -> None:
    """Bring all files of the published checkpoint to `output`, printing a line per file.

    Raises:
        FetchError: the hub cannot be reached, or a file is not the published one.
    """
    wrong = [name for name in SHA256 if not _is_right(output, name)]
    for name in SHA256:
        if name not in wrong:
            print(f"  {name}  already there, verified")
    try:
        if wrong:
            probe(wrong[0])
        for name in wrong:
            download(name, output)
            _verify(output, name)
    except (HTTPError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FetchError(
            f"cannot download {REPOSITORY} from the Hugging Face hub ({reason}); "
            "check the network and run this again, what is there is kept"
        ) from error


def _is_right(output: Path, name: str) -> bool:
    path = output / name
    return path.is_file() and sha256(path) == SHA256[name]


def _verify(output: Path, name: str) -> None:
    """Check a fresh file's hash; a wrong one is removed, so that the next run fetches it anew."""
    found = sha256(output / name)
    if found != SHA256[name]:
        (output / name).unlink()
        raise FetchError(
            f"{name} has SHA-256 {found}, the published file has {SHA256[name]}; it was removed"
        )
    print(f"  {name}  verified", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with one sentence on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="checkpoint directory")
    options = parser.parse_args(argv)
    try:
        fetch(options.output)
    except KeyboardInterrupt:
        print("fetch_checkpoint: interrupted; run it again to go on", file=sys.stderr)
        return INTERRUPTED
    except FetchError as error:
        print(f"fetch_checkpoint: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: the published checkpoint (weights: CC BY-NC 4.0)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
