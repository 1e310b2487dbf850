"""The Streamlit app over a collection; `lmk-rag ui` starts it."""
