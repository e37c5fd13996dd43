"""Run `makewhole demo`: plant mistakes in real flights, find, repair and prove."""
