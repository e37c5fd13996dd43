"""Ask every system of a pipeline whether a window could be judged now, and collect all that is wrong."""
