r"""Make, bring in, take out and check voices: one JSON file each, as docs/voices.md describes.

    python build/make_voice.py random --seed 7 --stats spk_stat.txt --name anna
    python build/make_voice.py from-wav bo.wav --name bo --transcript "What is said in it." \
        --consent "Bo Lee agreed in writing, 2026-11-02"
    python build/make_voice.py import speaker.txt --source "sent by a user" --name cy
    python build/make_voice.py export anna > speaker.txt
    python build/make_voice.py check model_repository/chattts/1/weights/voices/*.json

A voice made in the folder of a running server is there for the next request. A name is taken once:
making the same voice again changes nothing, and other values under its name are refused. Without
--name the name is made from the values' checksum.

random draws from statistics that ChatTTS publishes in its configuration (spk_stat, a string to put
in a file); they are not part of this project. from-wav needs a checkpoint whose DVAE encodes the
recording: 1 ... 30 s, any common WAV file. import takes a speaker or an audio-prompt string or a
file with one; .pt files are pickles of PyTorch, which this command neither needs nor opens.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import voice_format as voices
from files import INTERRUPTED, create_once
from random_speaker import ALGORITHM, MAX_SEED, draw_speaker, read_statistics
from repository import OWN_REPOSITORY, SOURCE_VERSION, front_voices

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = OWN_REPOSITORY / front_voices(SOURCE_VERSION)
DEFAULT_CHECKPOINT = ROOT / "checkpoints" / "demo"
HASH_DIGITS = 12
"""Of the checksum in a name: 48 bits."""


class VoiceError(RuntimeError):
    """A voice cannot be made; the message says why."""


def save(options: argparse.Namespace, provenance: dict[str, str], **data: Any) -> None:
    """Write the voice that the options describe, unless it is there already, and say so.

    Args:
        options: of the command line.
        provenance: how the values came about.
        data: speaker, codes and transcript, as `voice_format.voice_content` takes them.

    Raises:
        ValueError: a field that the front would refuse.
        VoiceError: the name is taken by other values, or there is no such folder.
    """
    sha256 = voices.digest(data.get("speaker"), data.get("codes"))
    kind = voices.SPEAKER if data.get("codes") is None else voices.AUDIO_PROMPT
    name = options.name or f"{kind}-{sha256[:HASH_DIGITS]}"
    tool = f"make_voice.py {options.command}"
    facts = {
        "languages": options.language or list(voices.LANGUAGES),
        "gender": options.gender,
        "styles": options.style,
        "description": options.description,
        "aliases": options.alias,
        "auditioned": options.auditioned,
        "license": options.license,
        "provenance": {**provenance, "tool": tool, "date": options.date},
    }
    content = voices.voice_content(name, facts, **data)
    path = options.folder / (name + voices.SUFFIX)
    if not options.folder.is_dir():
        raise VoiceError(f"{options.folder}: no such folder; build a repository first or name one")
    hidden_size = _hidden_size(options.folder)
    voices.parse_voice(content, name, hidden_size)
    _check_names(options.folder, name, options.alias)
    if create_once(path, content):
        print(f"{name}: made, {path}, SHA-256 of the values {sha256}")
        return
    found = voices.parse_voice(path.read_bytes(), name, hidden_size).facts["sha256"]
    if found != sha256:
        raise VoiceError(f"{path}: the name is taken by other values; nothing is changed")
    print(f"{name}: is there already, {path}, SHA-256 of the values {sha256}")


def make_random(options: argparse.Namespace) -> None:
    """Draw a speaker."""
    statistics = read_statistics(options.stats)
    provenance = {
        "method": "random",
        "source": statistics.origin,
        "algorithm": ALGORITHM,
        "seed": str(options.seed),
    }
    save(options, provenance, speaker=draw_speaker(statistics, options.seed))


def make_from_wav(options: argparse.Namespace) -> None:
    """Encode a recording."""
    # imported late: the other commands need neither weights nor a resampler
    import layout
    from checkpoint import Checkpoint
    from files import sha256
    from recordings import check_recording, read_recording
    from reference_encoder import encode

    samples = read_recording(options.file)
    check_recording(samples)
    checkpoint = Checkpoint.open(options.checkpoint)
    codes = encode(samples, checkpoint.load("DVAE"), checkpoint.dvae.encoder.num_layers)
    encoder = sha256(checkpoint.root / layout.TENSOR_FILES["DVAE"])
    provenance = {
        "method": "recording",
        "source": f"{options.file.name}, {len(samples) / layout.SAMPLE_RATE:.2f} s, "
        f"SHA-256 {sha256(options.file)}",
        "consent": options.consent,
        "encoder": f"DVAE of the checkpoint {checkpoint.name}, SHA-256 {encoder}",
    }
    save(options, provenance, codes=codes, transcript=options.transcript)


def make_imported(options: argparse.Namespace) -> None:
    """Bring in a string of the community."""
    string = _read_string(options.data)
    provenance = {
        "method": "imported",
        "source": options.source,
        "string": f"SHA-256 {hashlib.sha256(string.encode()).hexdigest()}",
    }
    if options.consent:
        provenance["consent"] = options.consent
    if not voices.is_audio_prompt(string):
        if options.transcript:
            raise VoiceError("--transcript: the string is no audio prompt")
        save(options, provenance, speaker=voices.decode_speaker(string))
        return
    if not (options.transcript and options.consent):
        raise VoiceError("an audio prompt needs --transcript and --consent")
    codes = voices.decode_audio_prompt(string)
    save(options, provenance, codes=codes, transcript=options.transcript)


def export(options: argparse.Namespace) -> None:
    """Print a voice's string, as other ChatTTS programs take it."""
    path = options.folder / (options.name + voices.SUFFIX)
    content = path.read_bytes()
    voice = voices.parse_voice(content, options.name, None).voice
    if voice.audio_prompt_codes is None:
        assert voice.speaker_embedding is not None
        print(voices.encode_speaker(voice.speaker_embedding))
        return
    print(voices.encode_audio_prompt(voice.audio_prompt_codes))
    print(f"transcript: {voice.transcript}", file=sys.stderr)


def check(options: argparse.Namespace) -> None:
    """Check files as a server does that finds them where they lie."""
    broken = 0
    for path in options.files:
        name = path.name.removesuffix(voices.SUFFIX)
        hidden_size = options.hidden_size or _hidden_size(path.parent)
        try:
            found = voices.parse_voice(path.read_bytes(), name, hidden_size)
            _check_names(path.parent, name, found.aliases)
        except (OSError, ValueError, VoiceError) as error:
            broken += 1
            print(f"{path}: {error}", file=sys.stderr)
            continue
        print(f"{path}: {found.facts['kind']}, SHA-256 of the values {found.facts['sha256']}")
    if broken:
        raise VoiceError(f"{broken} of {len(options.files)} files would be left out by a server")


def _check_names(folder: Path, name: str, aliases: Sequence[str]) -> None:
    """Check that no other voice of a folder has one of these names.

    Raises:
        VoiceError: one has; a server leaves one of both out.
    """
    for path in sorted(folder.glob(f"[!.]*{voices.SUFFIX}")):
        other = path.name.removesuffix(voices.SUFFIX)
        if other == name:
            continue
        others = {other}
        with suppress(ValueError):  # what is broken has no aliases
            others |= {*voices.parse_voice(path.read_bytes(), other, None).aliases}
        if common := others & {name, *aliases}:
            raise VoiceError(f"{', '.join(sorted(common))}: {path} has that name or alias")


def _read_string(data: str) -> str:
    """Return a voice's string from an argument, a file or standard input."""
    if data == "-":
        return sys.stdin.read().strip()
    try:
        content = Path(data).read_bytes()
    except OSError:  # also: too long for a file's name
        return data.strip()
    if content.startswith(b"PK"):
        raise VoiceError(
            f"{data}: a PyTorch file, which is a pickle; write its vector as a speaker string "
            "where ChatTTS is installed, and import that"
        )
    if content.startswith(b"{"):
        raise VoiceError(f"{data}: a voice's file already; copy it where it is wanted")
    return content.decode().strip()


def _hidden_size(folder: Path) -> int | None:
    """Return the length of a speaker in the repository of a folder, None if it is in none."""
    try:
        facts = json.loads((folder.parent / "checkpoint.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    hidden_size: int = facts["hidden_size"]
    return hidden_size


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed <= MAX_SEED:
        raise argparse.ArgumentTypeError(f"{seed}; allowed: 0 ... {MAX_SEED}")
    return seed


def _maker_options() -> argparse.ArgumentParser:
    maker = argparse.ArgumentParser(add_help=False)
    maker.add_argument("--name", help="default: made from the checksum of the values")
    maker.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="default: %(default)s")
    maker.add_argument(
        "--language", action="append", choices=voices.LANGUAGES, help="repeatable; default: both"
    )
    maker.add_argument("--gender", choices=voices.GENDERS, default="unknown")
    maker.add_argument("--style", action="append", default=[], help="a tag; repeatable")
    maker.add_argument("--description", default="", help="one line for people")
    maker.add_argument("--alias", action="append", default=[], help="another name; repeatable")
    maker.add_argument("--license", default="unspecified")
    maker.add_argument("--auditioned", action="store_true", help="somebody has listened to it")
    maker.add_argument("--date", default=datetime.date.today().isoformat(), help="default: today")
    return maker


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    maker = _maker_options()
    consent = "who allowed this use of the voice, and when"

    command = commands.add_parser("random", parents=[maker], help="draw a speaker vector")
    command.add_argument("--seed", type=_seed, required=True, help=f"0 ... {MAX_SEED}")
    command.add_argument(
        "--stats",
        type=Path,
        required=True,
        metavar="FILE",
        help="spk_stat: the string or its bytes",
    )
    command.set_defaults(run=make_random)

    command = commands.add_parser("from-wav", parents=[maker], help="encode a recording")
    command.add_argument("file", type=Path)
    command.add_argument("--transcript", required=True, help="what is said, as it is spoken")
    command.add_argument("--consent", required=True, help=consent)
    command.add_argument("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT)
    command.set_defaults(run=make_from_wav)

    command = commands.add_parser("import", parents=[maker], help="bring in a voice's string")
    command.add_argument("data", metavar="STRING|FILE", help="- reads it from stdin")
    command.add_argument("--source", required=True, help="where the string comes from")
    command.add_argument("--transcript", help="of an audio prompt")
    command.add_argument("--consent", help=f"{consent}; an audio prompt needs it")
    command.set_defaults(run=make_imported)

    command = commands.add_parser("export", help="print a voice's string")
    command.add_argument("name")
    command.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="default: %(default)s")
    command.set_defaults(run=export)

    command = commands.add_parser("check", help="check files as a server does that finds them")
    command.add_argument("files", type=Path, nargs="+", metavar="FILE")
    command.add_argument(
        "--hidden-size", type=int, help="length of a speaker (that of the repository they lie in)"
    )
    command.set_defaults(run=check)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with one sentence on standard error."""
    options = _parser().parse_args(argv)
    try:
        options.run(options)
    except KeyboardInterrupt:
        print("make_voice: interrupted; nothing half-made is left", file=sys.stderr)
        return INTERRUPTED
    except (VoiceError, OSError, ValueError) as error:
        print(f"make_voice: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
