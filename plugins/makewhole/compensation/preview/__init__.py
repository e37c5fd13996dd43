"""Preview a frozen plan: judge its actions by the guards of the run, and write nothing."""
