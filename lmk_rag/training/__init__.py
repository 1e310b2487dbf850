"""Training of the adapters: text, drawing of examples, the two stages, and the loop that runs them."""
