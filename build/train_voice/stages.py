"""The stages of a run, in order; each leaves its result in a folder, and is done once.

corpus     the sentences, the tokenizer, the ear's language model; what a voice to go on from knows
synthesis  the teachers say them
dvae       mel -> codes -> mel
vocos      mel -> waveform
encode     the codes of every utterance
gpt        text -> codes, with the Decoder
export     the checkpoint
evaluate   held-out sentences, heard by the recognizer
report     plots and a page
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from checkpoint import Checkpoint
from files import atomic_path, write_json
from layout import SAMPLE_RATE

from train_voice import about, evaluation, package, report
from train_voice.codec_training import encode_corpus, train_dvae, train_vocos
from train_voice.corpus import Utterance, draw
from train_voice.dvae import Dvae
from train_voice.export import VoiceModel, read_tokenizer, sizes_json, write_weights
from train_voice.gpt import TokenModel
from train_voice.modules import Decoder, Vocos
from train_voice.settings import Settings
from train_voice.speakers import Speakers
from train_voice.speech_data import FACTS_FILE, SpeechData
from train_voice.stage_folder import alone_in, basis_of, set_aside_unless_of
from train_voice.starting_point import StartError, chain, kept_back, start_of, write_states
from train_voice.synthesis import synthesize
from train_voice.token_data import CODES_FILE, TokenData
from train_voice.token_training import FINE, TokenTraining
from train_voice.training import STATE_FILE, load_module, train, trained_steps
from train_voice.work_folder import SENTENCES_FILE, WrongFolder, claim

Say = Callable[[str], None]


class Run:
    """One training run in a work folder."""

    def __init__(
        self, work: Path, settings: Settings, say: Say = print, start: Path | None = None
    ) -> None:
        """Set up.

        Args:
            work: the folder of everything the run makes.
            settings: of the run.
            say: is told of the progress.
            start: a checkpoint of an earlier run to go on from; wanted until the corpus is there.
        """
        self._work, self._settings, self._say, self._start = work, settings, say, start
        self.checkpoint = work / "checkpoint"
        self._speech: SpeechData | None = None
        self.stages: dict[str, Callable[[], None]] = {
            "corpus": self._corpus,
            "synthesis": self._synthesis,
            "dvae": self._dvae,
            "vocos": self._vocos,
            "encode": self._encode,
            "gpt": self._gpt,
            "export": self._export,
            "evaluate": self._evaluate,
            "report": self._report,
        }

    def run(self, names: Sequence[str]) -> None:
        """Run stages in the order given, from where an earlier call stopped.

        Raises:
            Interrupted: a signal came; call again to go on.
            Busy: another process works at one of them.
            WrongFolder: the folder was made by other settings, or its results do not fit.
            StateError: what a stage saved is missing or damaged.
            StartError, CheckpointError: the run cannot start from that checkpoint.
            CorpusError, TeacherError: there is no corpus, or nobody to say it.
            FloatingPointError: a loss is no number any more.
        """
        claim(self._work, self._settings, self._start)
        for name in names:
            self._say(f"== {name}")
            self.stages[name]()

    @property
    def speech(self) -> SpeechData:
        """The spoken corpus."""
        if self._speech is None:
            self._need(self._work / "speech" / FACTS_FILE, "synthesis")
            self._speech = SpeechData(self._work / "speech")
        return self._speech

    def _need(self, path: Path, stage: str) -> None:
        if not path.exists():
            raise WrongFolder(f"{self._work} has no {path.name}: run {stage} first")

    def _corpus(self) -> None:
        with alone_in(self._work):
            path = self._work / SENTENCES_FILE
            if not path.exists():
                self._draw(path)

    def _draw(self, path: Path) -> None:
        facts = start_of(self._work)
        if facts is not None and self._start is None:
            raise StartError(f"{self._work} has no weights yet: name the voice to go on from")
        kept = kept_back(self._start) if self._start is not None else None
        utterances = draw(self._settings.corpus, self._settings.seed, kept)
        package.write_text_files(self.checkpoint, utterances, self._settings)
        if facts is not None and self._start is not None:
            tokenizer = read_tokenizer(self.checkpoint)
            write_states(self._work, self._start, self._token_model(), tokenizer)
        with atomic_path(path) as temporary:
            lines = (json.dumps(asdict(u), ensure_ascii=False) + "\n" for u in utterances)
            temporary.write_text("".join(lines), encoding="utf-8")
        self._say(f"{len(utterances)} utterances")

    def _utterances(self) -> list[Utterance]:
        self._need(self._work / SENTENCES_FILE, "corpus")
        lines = (self._work / SENTENCES_FILE).read_text(encoding="utf-8").splitlines()
        return [Utterance(**json.loads(line)) for line in lines]

    def _synthesis(self) -> None:
        folder = self._work / "speech"
        with alone_in(folder):
            if not (folder / FACTS_FILE).exists():
                synthesize(folder, self._utterances(), self._say)
        self._say(f"{self._hours():.2f} hours of speech")

    def _hours(self) -> float:
        return sum(s.num_samples for s in self.speech.of("train")) / SAMPLE_RATE / 3600

    def _dvae(self) -> None:
        folder = self._work / "dvae"
        self._check_begun(folder)
        fixed, seed = start_of(self._work) is not None, self._training_seed(0)
        train_dvae(folder, self.speech, self._settings, seed, self._say, fixed_codes=fixed)

    def _vocos(self) -> None:
        folder = self._work / "vocos"
        self._check_begun(folder)
        dvae, seed = self._work / "dvae", self._training_seed(1)
        train_vocos(folder, dvae, self.speech, self._settings, seed, self._say)

    def _encode(self) -> None:
        codes = self._work / "codes" / CODES_FILE
        set_aside_unless_of(codes, self._encoder_name(), self._say)
        with alone_in(codes.parent):
            if not codes.exists():
                encode_corpus(codes.parent, self._work / "dvae", self.speech, self._settings)

    def _encoder_name(self) -> str:
        dvae = Dvae(self._settings.sizes.dvae)
        load_module(self._work / "dvae", "dvae", dvae)
        return dvae.encoder_name()

    def _check_begun(self, folder: Path) -> None:
        if start_of(self._work) is not None and not (folder / STATE_FILE).exists():
            raise WrongFolder(f"{folder} has lost what it started from: use another folder")

    def _training_seed(self, stage: int) -> int:
        """Return a stage's seed; a voice that goes on does not meet the batches of before again."""
        return self._settings.seed + stage + 10 * len(chain(start_of(self._work)))

    def _gpt(self) -> None:
        settings, state = self._settings, self._work / "gpt" / STATE_FILE
        learnt_from = basis_of(self._work / "codes")
        if not learnt_from:
            raise WrongFolder(f"{self._work} has no codes: run encode first")
        self._check_begun(state.parent)
        set_aside_unless_of(state, learnt_from, self._say)
        if trained_steps(state.parent) >= settings.gpt.steps:
            self._say(f"gpt: {trained_steps(state.parent)} steps are done already")
            return
        training = TokenTraining(
            self._token_model(),
            self._decoder(),
            self._token_data(),
            self.speech,
            settings.batch_tokens,
            settings.sampling_from,
        )
        train(
            self._work / "gpt", training.trainee, settings.gpt, self._training_seed(2),
            training.step, self._say,
        )  # fmt: skip

    def _export(self) -> None:
        sizes, codes = self._settings.sizes, self._encoder_name()
        if (learnt := basis_of(self._work / "gpt") or "nothing") != codes:
            message = f"the token model learnt codes of {learnt}, not of {codes}"
            raise WrongFolder(f"{message}: run encode and gpt")
        voice = VoiceModel(
            self._token_model(), self._decoder(), Dvae(sizes.dvae), Vocos(sizes.vocos)
        )
        load_module(self._work / "gpt", "model", voice.model)
        load_module(self._work / "gpt", "decoder", voice.decoder)
        load_module(self._work / "dvae", "dvae", voice.dvae)
        load_module(self._work / "vocos", "vocos", voice.vocos)
        write_weights(self.checkpoint, voice)
        date = datetime.now(UTC).date().isoformat()
        package.write_voices(self.checkpoint, self._speakers(), date)
        write_json(self.checkpoint / "spec.json", sizes_json(Checkpoint.open(self.checkpoint)))
        facts: dict[str, Any] = {"hours": round(self._hours(), 2)}
        facts["utterances"] = len(self.speech.of("train"))
        sentences = self._work / SENTENCES_FILE
        steps = {name: trained_steps(self._work / name) for name in report.TRAINED}
        facts["steps"] = steps
        for name in (name for name, count in steps.items() if count == 0):
            self._say(f"{name}: not trained here, it is as the voice before had it")
        if (start := start_of(self._work)) is not None:
            facts["start"] = start
        about.write_provenance(self.checkpoint, self._settings, sentences, facts, date)
        about.write_readme(self.checkpoint)
        # what was measured before is not of these weights
        (self._work / report.EVALUATION_FILE).unlink(missing_ok=True)

    def _evaluate(self) -> None:
        result = evaluation.evaluate_checkpoint(self.checkpoint, self._settings.evaluated)
        write_json(self._work / report.EVALUATION_FILE, result)
        about.add_figures(self.checkpoint, result)
        self._say(json.dumps(result, ensure_ascii=False))

    def _report(self) -> None:
        page = report.write(self._work, self.checkpoint)
        self._say(f"the voice is in {self.checkpoint}, and what it can do in {page}")

    def _tokenizer_size(self) -> int:
        return read_tokenizer(self.checkpoint).size

    def _token_model(self) -> TokenModel:
        torch.manual_seed(self._settings.seed)
        return TokenModel(self._settings.sizes.gpt(self._tokenizer_size()), FINE)

    def _decoder(self) -> Decoder:
        sizes = self._settings.sizes
        torch.manual_seed(self._settings.seed)
        decoder = Decoder(sizes.decoder, sizes.dvae.num_mels)
        dvae = Dvae(sizes.dvae)
        load_module(self._work / "dvae", "dvae", dvae)
        decoder.coef.copy_(dvae.coef)
        return decoder

    def _speakers(self) -> Speakers:
        return Speakers(self._settings.sizes.hidden, self._settings.seed)

    def _token_data(self) -> TokenData:
        tokenizer = read_tokenizer(self.checkpoint)
        return TokenData(self.speech, self._work / "codes", tokenizer, self._speakers())
