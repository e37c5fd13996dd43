"""Name what is measured: so many records of one size in one codec."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A number of records of one size in one codec, spread evenly over the partitions."""

    records: int
    is_large: bool = False
    codec: str = "lz4"

    @property
    def topic(self) -> str:
        return f"bench-{self.records}-{'1kb' if self.is_large else '110b'}-{self.codec}"

    @property
    def title(self) -> str:
        return f"{millions(self.records)} × {'1 KB' if self.is_large else '110 B'}, {self.codec}"


def millions(records: int) -> str:
    """Format a number for people: `10 M`, `20 k`."""
    return f"{records / 1e6:g} M" if records >= 100_000 else f"{records / 1e3:g} k"
