"""The remedies that no line of a pipeline file names: those that version 1 of the format took, and those to suggest."""
