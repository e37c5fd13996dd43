"""Open a window: check that its points can be read as the file says, freeze its ranges, and go on with what is left."""
