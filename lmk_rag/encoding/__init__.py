"""The model layer: text to tokens, tokens to windows with landmarks, windows to states, states to vectors."""
