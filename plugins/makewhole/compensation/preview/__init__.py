"""Preview: judge a frozen plan by the guards of its run and write nothing."""
