"""Name the types by which a window reads the values of columns, where the columns say more than the pipeline file."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ValueTypes:
    """The types of columns by name.

    `values`: of those that the file declares a `string` and tables hold in another type. `filters`: of those that a
    `where` names. `version_units`: how far apart two versions of each table point are at least, as decimals in text.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    version_units: Mapping[str, str] = field(default_factory=dict)

    def of_values(self, declared: Mapping[str, str]) -> dict[str, str]:
        """Return the types by which columns with these declared types are read."""
        return {
            name: self.values.get(name, kind) if kind == "string" else kind  # the file's word for every other type
            for name, kind in declared.items()
        }


DECLARED = ValueTypes()
"""Every column as the file declares it."""
