"""Read and write what a window's steps commit: snapshots, results, handed-over keys, answers of the gate."""
