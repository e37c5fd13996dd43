"""Producer sequences: how records are numbered, and what a numbering proves."""
