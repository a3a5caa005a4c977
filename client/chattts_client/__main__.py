"""`python -m chattts_client` is the command `chattts`."""

from .cli import program

if __name__ == "__main__":
    program()
