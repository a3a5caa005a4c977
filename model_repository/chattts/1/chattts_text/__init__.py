"""What is written becomes what is said: the text front end of ChatTTS, without any model."""

from .aligned import AlignedText, Edit, Note, Span
from .context import Context, Token, Vocabulary
from .front_end import FrontEnd, PreparedText
from .segments import Segment, SegmentLimits
from .switches import OPTION_NAMES, Language, Switches

__all__ = [
    "OPTION_NAMES",
    "AlignedText",
    "Context",
    "Edit",
    "FrontEnd",
    "Language",
    "Note",
    "PreparedText",
    "Segment",
    "SegmentLimits",
    "Span",
    "Switches",
    "Token",
    "Vocabulary",
]
