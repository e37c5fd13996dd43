"""Find the part of a file that cannot be read though the file is there, and name what to do about it."""

from typing import TYPE_CHECKING

from makewhole.model.errors import TransientError

if TYPE_CHECKING:
    from hdfs_native import Client as HdfsClient

_PIECE_BYTES = 8 << 20


def broken_block(client: "HdfsClient", path: str) -> str:
    """Return the first block of a file on HDFS that cannot be read; empty: all can be.

    Raises:
        FileNotFoundError: the file is not there.
        OSError, RuntimeError: the NameNode does not answer.
    """
    status = client.get_file_info(path)
    size = status.blocksize or max(status.length, 1)
    starts = range(0, status.length, size)
    for number, start in enumerate(starts, 1):
        end = min(start + size, status.length)
        try:
            with client.read(path) as file:
                for at in range(start, end, _PIECE_BYTES):
                    file.read_range(at, min(_PIECE_BYTES, end - at))
        except FileNotFoundError:
            raise
        except (OSError, RuntimeError):
            return f"block {number} of {len(starts)}, bytes {start} to {end - 1}, of HDFS"
    return ""


def not_readable(name: str, part: str) -> TransientError:
    """Return the error of a file that is listed, and whose bytes do not come. `part`: what `broken_block` says."""
    if not part:
        return TransientError(f"{name} is there, and its bytes cannot be read; what keeps it does not answer")
    return TransientError(
        f"{name} is there, and cannot be read: no DataNode gives {part}. It is tried again for as long as `retry_for`. "
        "`hdfs fsck <path> -files -blocks -locations` names the block, and the DataNodes that had it: start those. "
        "Where it is lost for good, restore the file, or remove it (a file of a table by taking it out of the table): "
        "what it held is missing then, and is repaired"
    )
