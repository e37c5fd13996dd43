"""Name the files of a publication, below its folder."""


def manifest_path(number: int, revision: int) -> str:
    """Return the path of a manifest below the folder of a publication."""
    return f"manifests/window={number:08d}.revision={revision:04d}.json"


def data_folder(number: int, revision: int) -> str:
    """Return the folder with the files of a revision of a window, below that of the publication."""
    return f"data/window-{number:08d}/revision-{revision:04d}"
