"""The page's address, changed in one step: the way back leads to an address that was there, not to one in between."""

import streamlit as st


def set_address(**values: str | None) -> None:
    """Set parameters of the address, all at once.

    Args:
        values: by the parameter's name; None takes it out.
    """
    st.query_params.update({name: [] if value is None else value for name, value in values.items()})
