"""Define makewhole's words as types: no I/O, no third-party clients. The glossary in docs/ says what each means."""
