"""Words of Latin letters that are not words: KPI, PyTorch, H264, GPUs, snake_case.

Capitals alone are spelled, except what people say as a word; joined words are split where a new one
begins; digits inside a name are read as names are.
"""

import re

from .english_numbers import digits, model_number, plural
from .english_rules import word_set

_SAID_AS_WORDS = word_set(
    "NASA NATO UNESCO UNICEF OPEC ASEAN NAFTA FIFA UEFA NASDAQ AIDS COVID SARS MERS LASER RADAR "
    "SONAR SCUBA SWAT POTUS SCOTUS FEMA NOAA DARPA ICANN RAM ROM LAN WAN PIN SIM BIOS ASCII "
    "JSON YAML TOML NET CUDA BERT TOEFL IELTS UNIX GNU NAND NOR XOR VISA IKEA LEGO NIKE SONY "
    "BASIC FORTRAN COBOL BASH SHA MIDI WIMAX CAPTCHA COBRA DOOM TED WASP YOLO LOL FOMO SAAS "
    "PAAS IAAS LIDAR GIF OK DOS REST CRUD CORS LAMP RAID SOAP SPAM HIPAA ERISA NIMBY INTERPOL "
    "TESLA NEMO ONNX ARM JAVA ZIP MAX RAG JUICE"
)
_SHOUTED = word_set(
    "A I ALL AND ANY ARE AS AT BE BIG BUT BUY BY CALL CAN DAY DO DONE DOWN EACH END EVER FAST "
    "FIND FIRE FIRST FOR FREE FROM GET GO GOOD GREAT HAS HAVE HE HELP HER HERE HIS HOW IF IN IS "
    "IT ITS JUST KEEP KNOW LAST LET LIFE LIKE LIVE LOVE MADE MAKE MAN MAY ME MORE MOST MUST MY "
    "NEED NEVER NEW NO NOT NOTE NOW OF OFF OLD ON ONE ONLY OR OUR OUT OVER PLEASE READ REAL RUN "
    "SALE SAY SEE SHE SO SOME STAY STOP TAKE TEST THAN THAT THE THEM THEN THEY THIS TIME TO "
    "TODO TOO TOP TRY TWO UP USE USED VERY WAIT WANT WAR WAS WAY WE WELL WHAT WHEN WHO WHY WILL "
    "WITH WORK YES YOU YOUR ABOUT AFTER AGAIN ALSO BACK BEFORE EVERY HELLO HOUSE NEXT OPEN "
    "OTHER PEOPLE RIGHT SORRY THANK THANKS THERE THESE THINK THREE TODAY UNDER WATER WHERE "
    "WHICH WORLD WOULD WRITE WRONG DOES DID GOING BAD BEST BOTH CAR CASE CAT COME COULD DOG "
    "EASY EAT EVEN FOOD FULL FUN GIRL BOY GUY HAND HARD HIGH HIM HOME HOT COLD IDEA INTO LATE "
    "LEFT LESS LINE LITTLE LONG LOOK LOT LOW MANY MEN MUCH NAME NEAR ONCE PART PLAY PUT SAFE "
    "SAID SAME SHOULD SHOW SIDE SUCH SURE TELL THING TURN UNTIL WERE WOMAN WOMEN YEAR YET ZERO "
    "BEWARE DANGER WARNING ERROR ALERT NOTICE"
)
"""Short words that are words in capitals too."""

_INITIALISMS = word_set(
    "USA UK EU UN FBI CIA IRS KPI API CEO CTO CFO GDP AI IT TV PC UI UX URL IP ID DIY FAQ VIP "
    "ATM EOD ETA USB UFO GUI IEEE ISO AWS IBM UAE UPS USPS "
    "ASAP ACLU ESPN OLED ICAO AARP EBIT IATA ISIN"
)
"""Spelled in a line of capitals too."""

_KEPT = {
    "LoRA": "LoRA",
    "QLoRA": "Q LoRA",
    "SaaS": "SaaS",
    "PaaS": "PaaS",
    "IaaS": "IaaS",
    "PhD": "P H D",
    "MacBook": "Mac Book",
    "LaTeX": "LaTeX",
    "macOS": "mac O S",
    "iOS": "i O S",
    "YouTube": "YouTube",
    "LinkedIn": "LinkedIn",
    "TikTok": "TikTok",
    "FaceTime": "FaceTime",
    "MySQL": "My S Q L",
    "NoSQL": "No S Q L",
    "OAuth": "O Auth",
    "YoY": "year over year",
    "QoQ": "quarter over quarter",
    "MoM": "month over month",
    "thx": "thanks",
    "Thx": "Thanks",
    "pls": "please",
    "Pls": "Please",
    "plz": "please",
    "pts": "points",
    "yds": "yards",
    "WWI": "World War one",
    "WWII": "World War two",
    "yrs": "years",
    "hrs": "hours",
    "wks": "weeks",
    "lbs": "pounds",
    "kgs": "kilograms",
    "Ctrl": "Control",
    "ctrl": "control",
    "Cmd": "Command",
}
_VOICED = word_set("hmm hm mm mmm shh sh psst pst tsk brr pfft zzz nth mr mrs ms dr st ft vs")
"""Lower-case words without a vowel that are not letters."""

_LONGEST_SPELLED = 5
"""Capitals with a vowel and more letters than this are read as a word."""

_SURNAMES = re.compile(r"(?:Mc|Mac|O'|De|Di|Du|La|Le|Van|Von|Fitz)[A-Z][a-z]+\Z")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_MIXED = re.compile(r"(?:[A-Z][a-z][A-Z]{1,2}|[A-Z]{2,5}[a-rt-z](?=\Z))(s?)\Z")
"""IoT, QoS, VoIP, PCIe, NVMe: spelled, small letters too."""
_PRONOUNCEABLE = re.compile(
    r"(?:(?:[BCDFGHJKLMNPRSTVWYZ]|QU|[BCFGPS]L|[BCDFGPT]R|[CSTW]H|S[CKMNPTW]|STR|SPR|TW)?"
    r"(?:A[IUY]?|E[AEIUY]?|I[EO]?|O[AIOUY]?|U|(?<=.)Y)"
    r"(?:[BCDFGKLMNPRSTVWXYZ]|[CT]K|LL|SS|FF|TT|L[DFKMPT]|M[BP]|N[CDGKT]|R[DFGKLMNPST]|[CSTG]H|HN"
    r"|S[KPT]|[PCK]T|FT|ST|GHT|[DFLNPRX]TH|[NTR]CH|RST|NG)?){1,3}E?S?\Z"
)
"""Capitals that English spelling allows as a word: PRICE, TOTAL, JOHN; not JPEG, ISBN, ADHD."""
_PLURAL = re.compile(r"([A-Z]{2,})('?s)\Z")
_VOWEL = re.compile(r"[AEIOU]|(?<=.)Y")


def read_word(word: str) -> str:
    """Say a word of ASCII letters as people do; most words come back as they are.

    Args:
        word: Letters, perhaps with apostrophes inside.
    """
    if word in _KEPT:
        return _KEPT[word]
    if len(word) == 1 or not word.isascii():
        return word
    if word.islower() or word[1:].islower():
        is_spelled = not _VOWEL.search(word.upper()) and word.lower() not in _VOICED
        return " ".join(word) if is_spelled and "'" not in word else word
    plural = _PLURAL.match(word)
    if plural:
        stem, suffix = plural[1], plural[2]
        if is_said(stem):
            return f"{stem}{suffix}"
        return f"{' '.join(stem)}'s"
    if word.isupper():
        return word if "'" in word or is_said(word) else " ".join(word)
    if _SURNAMES.match(word):
        return word
    mixed = _MIXED.match(word)
    if mixed:
        return " ".join(word[: mixed.start(1)].upper()) + ("'s" if mixed[1] else "")
    return read_name(word) if "'" not in word else word


def is_said(word: str) -> bool:
    """Say whether people read these capitals as a word."""
    if word in _SAID_AS_WORDS or word in _SHOUTED:
        return True
    if len(word) > _LONGEST_SPELLED:
        return _VOWEL.search(word) is not None
    is_long = len(word) > 3 and word[0] != "U"  # USDA, UCLA
    return is_long and word not in _INITIALISMS and bool(_PRONOUNCEABLE.match(word))


ATOMS = ("SO", "NO")
"""Words too, but not in a formula such as NO2."""


def read_name(name: str) -> str:
    """Split a name of letters and digits into words, capitals spelled, numbers as in names.

    Args:
        name: ASCII letters and digits.
    """
    said: list[str] = []
    parts = _CAMEL.findall(name)
    for index, part in enumerate(parts):
        if part.isdecimal():
            said.append(digits(part) if part[0] == "0" else model_number(part))
        elif part == "s" and index > 1 and index == len(parts) - 1 and parts[0].isupper():
            said[-1] = plural(said[-1])  # MP3s
        else:
            is_formula = part in ATOMS and parts[index + 1 : index + 2] != []
            said.append(" ".join(part) if is_formula else read_word(part))
    return " ".join(said)


_SHOUT = re.compile(r"[A-Z][A-Z']+")
_SHOUTED_PAIR = re.compile(r"[A-Z] [A-Z]")


def is_shouting(line: str) -> bool:
    """Say whether a line is written in capitals, so that capitals in it mean nothing."""
    words = _SHOUT.findall(line)
    return (
        len(words) >= 3
        and not any(one.islower() for one in line)
        and _SHOUTED_PAIR.search(line) is not None  # not a list: "WHO, IMF, WTO"
        and any(word in _SHOUTED or len(word) > _LONGEST_SPELLED for word in words)
    )


def read_shouted(word: str) -> str:
    """Say a word of a line in capitals: a word, unless it is a well-known abbreviation.

    A word that would be spelled elsewhere comes back in small letters, so that it stays a word.
    """
    if len(word) > 1 and (word in _INITIALISMS or not _VOWEL.search(word)):
        return " ".join(word)
    return word if "'" in word or len(word) == 1 or is_said(word) else word.lower()


_SPELLED_TOKENS = word_set("usr etc edu io ai uk us eu au ie img api url exe")
"""Parts of addresses with a vowel that are spelled all the same."""


_SPLIT_TOKENS = {
    "docx": "doc x",
    "gitignore": "git ignore",
    "localhost": "local host",
    "README": "read me",
}


def read_token(token: str) -> str:
    """Say a piece of an address: a word as it is, what has no vowel letter by letter."""
    said = []
    for part in _CAMEL.findall(token):
        if part.isdecimal():
            said.append(digits(part) if part[0] == "0" else model_number(part))
        elif part in _SPLIT_TOKENS:
            said.append(_SPLIT_TOKENS[part])
        elif part.isalpha() and _is_spelled(part):
            said.append(" ".join(part))
        else:
            said.append(part)
    return " ".join(said)


def _is_spelled(part: str) -> bool:
    if part.lower() in _SPELLED_TOKENS or not _VOWEL.search(part.upper()):
        return True
    return part.isupper() and len(part) > 1 and not is_said(part)
