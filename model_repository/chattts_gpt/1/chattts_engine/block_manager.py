"""BlockManager: hands out the KV blocks of one pool and takes them back.

A block stands for `block_size` token positions of keys and values in every layer. Each block is
either free or in exactly one block table; `check_integrity` holds that.
"""

from __future__ import annotations

from collections.abc import Iterable

from .sequence import Sequence


class BlockManager:
    """Free list plus the block tables of the running sequences."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        # Last in, first out: a finished sequence's blocks are the next ones used.
        self._free: list[int] = list(range(num_blocks - 1, -1, -1))

    @property
    def num_free(self) -> int:
        """Blocks in no table."""
        return len(self._free)

    @property
    def num_used(self) -> int:
        """Blocks in some table."""
        return self.num_blocks - len(self._free)

    def fragmentation(self, sequences: Iterable[Sequence]) -> float:
        """Return the share of the positions of used blocks that hold no token, 0 ... 1.

        Args:
            sequences: all that have blocks.
        """
        num_positions = self.num_used * self.block_size
        num_held = sum(sequence.num_computed_tokens for sequence in sequences)
        return 1 - num_held / num_positions if num_positions else 0.0

    def blocks_for(self, num_tokens: int) -> int:
        """Return how many blocks hold num_tokens positions."""
        return -(-num_tokens // self.block_size)

    def can_hold(self, sequence: Sequence, num_tokens: int) -> bool:
        """Whether the pool can grow this table to num_tokens positions now."""
        return self.blocks_for(num_tokens) - len(sequence.block_table) <= len(self._free)

    def grow(self, sequence: Sequence, num_tokens: int) -> None:
        """Extend the table to cover num_tokens positions; `can_hold` must be true."""
        missing = self.blocks_for(num_tokens) - len(sequence.block_table)
        assert missing <= len(self._free)
        for _ in range(missing):
            sequence.block_table.append(self._free.pop())

    def free(self, sequence: Sequence) -> None:
        """Take back every block of the table."""
        self._free.extend(reversed(sequence.block_table))
        sequence.block_table.clear()

    def check_integrity(self, sequences: Iterable[Sequence]) -> None:
        """Check that free and used blocks are all blocks, each once.

        Raises:
            RuntimeError: a block is lost, used twice, or both free and used.
        """
        used = [block for sequence in sequences for block in sequence.block_table]
        if sorted(used + self._free) != list(range(self.num_blocks)):
            raise RuntimeError(
                f"KV pool of {self.num_blocks} blocks is inconsistent: "
                f"{len(self._free)} free, {len(used)} in tables, "
                f"{len(set(used) | set(self._free))} distinct"
            )
