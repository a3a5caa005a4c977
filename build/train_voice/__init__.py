"""Trains a small speaking checkpoint from nothing: corpus, codec, vocoder, token model, export."""
