"""The command line: `makewhole …`."""
