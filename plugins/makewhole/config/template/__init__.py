"""Templates of compensating events: the expressions that a pipeline file may use, checked and rendered."""
