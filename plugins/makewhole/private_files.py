"""Make files and folders of this machine that their owner alone may read, before anything is written into them."""

import os
from contextlib import suppress
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def make_private(path: str | Path) -> None:
    """Make a file, empty where it is not there yet, with its folders. Folders that are there stay as they are; a file
    of this user loses the rights of others."""
    file = Path(path)
    make_private_folder(file.parent)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, FILE_MODE))
    with suppress(PermissionError):  # it is another user's, who shares it
        file.chmod(FILE_MODE)


def make_private_folder(path: str | Path) -> None:
    """Make a folder, and those above it that are not there; what is there stays as it is."""
    folder = Path(path)
    missing = [folder, *folder.parents]
    for new_folder in reversed([above for above in missing if not above.exists()]):
        new_folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
