"""Define the command line `makewhole …`."""
