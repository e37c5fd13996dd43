"""Report what the Spark steps of a window have committed, the same in the application that ran them and in their
tasks; and what of a window is sent to executors."""
