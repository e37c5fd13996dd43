"""The parts of the product that read what others wrote, each with its own inputs."""

from collections.abc import Callable, Mapping

from tests.fuzz.target import Target
from tests.fuzz.targets.decoders import decoders
from tests.fuzz.targets.logs import Logs, Sidecars
from tests.fuzz.targets.pipeline_files import PipelineFiles
from tests.fuzz.targets.proofs import proofs

TARGETS: Mapping[str, Callable[[], Target]] = {
    "pipeline_files": PipelineFiles,
    **decoders(),
    "logs": Logs,
    "sidecars": Sidecars,
    **proofs(),
}
"""How each is made, by its name."""
