"""Find how far what loads a store has come: by its own progress where the file names it, else by its consumer group."""
