"""The version of what a caller meets: inputs, outputs and metadata of the speech models."""

from typing import Final

CONTRACT: Final = 1
"""Part of the metadata of every response. Raised when a client written for the one before would
misread an answer or be refused; what is only added does not change it."""
