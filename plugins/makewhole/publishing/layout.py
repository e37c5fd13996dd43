"""Name the files of a publication, below its folder."""

REVOKED = "revoked"
"""The folder of the notices, below that of a publication."""


def published_below(pipeline: str) -> str:
    """Return the folder, below the storage root, of what is published of a pipeline whose file names no other."""
    return f"{pipeline}/published"


def manifest_path(number: int, revision: int) -> str:
    """Return the path of a manifest below the folder of a publication."""
    return f"manifests/window={number:08d}.revision={revision:04d}.json"


def notice_path(number: int, revision: int, ordinal: int) -> str:
    """Return the path of the notice that the certificates of a revision are revoked, the last one by an entry of the
    chain, below the folder of a publication."""
    return f"{REVOKED}/window={number:08d}.revision={revision:04d}.by={ordinal:06d}.json"


def data_folder(number: int, revision: int) -> str:
    """Return the folder with the files of a revision of a window, below that of the publication."""
    return f"data/window-{number:08d}/revision-{revision:04d}"
