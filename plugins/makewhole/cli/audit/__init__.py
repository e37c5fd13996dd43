"""Run `makewhole audit`: what a topic's log proves by itself."""
