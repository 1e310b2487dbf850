"""Settings: the collection, the model, the device, the language model. They hold for all windows until the app ends."""

import streamlit as st

from lmk_rag.encoding.base_model import ModelError
from lmk_rag.encoding.checkpoints import resolve, shipped_poolings
from ui.components.markup import tag, text
from ui.components.session import attempt, choices, choose, has_collection, path_named, searcher, through_app

DEVICES = ("auto", "cpu", "cuda", "mps")


def _show_collection() -> None:
    with st.form("collection", border=True):
        st.subheader("Collection", anchor=False)
        named = st.text_input("Folder", value=str(choices().collection), key="collection-folder")
        st.caption("A folder of this machine. Where there is none yet, the first documents that you add make one.")
        if st.form_submit_button("Open", type="primary", key="open-collection"):
            with attempt():
                path = path_named(named or "")
                if not (named or "").strip() or (path.exists() and not path.is_dir()):
                    raise ValueError(f"{named or 'Nothing'} is not a folder: name one by its whole path.")
                choose(collection=path)
                st.rerun()


def _show_model() -> None:
    with st.container(border=True):
        st.subheader("Model", anchor=False)
        made = _made_with()
        st.html(tag("div", text(made), "lr-note"))
        with st.form("model", border=False):
            model = st.text_input(
                "For a new collection, or to embed everything anew", value=choices().model, key="model-name"
            )
            st.caption(
                "default, a model's folder, or its name on the model hub. "
                + (f"Trained adapters are here for {', '.join(shipped)}." if (shipped := shipped_poolings()) else "")
            )
            device = st.selectbox("Device", DEVICES, index=DEVICES.index(choices().device), key="device")
            if st.form_submit_button("Use", type="primary", key="use-model"):
                with attempt(), st.spinner("Looking for the model (one of the hub is downloaded now) …"):
                    chosen = (model or "").strip() or "default"
                    _check_device(device or "auto")
                    _check_model(chosen)
                    choose(model=chosen, device=device or "auto")
                    st.rerun()


def _check_device(device: str) -> None:
    """Refuse a device that this machine lacks, now and not at the first search."""
    from lmk_rag.encoding.network import pick_device  # loads torch, which the page itself can do without

    try:
        pick_device(device)
    except ModelError as error:
        raise ValueError(
            f"This machine has no {device} device that can be used: choose auto, which takes the best there is, or cpu."
        ) from error


def _check_model(model: str) -> None:
    """Refuse a model that there is not, now and not when documents are waiting for it."""
    if model != choices().model:
        resolve(model)


def _made_with() -> str:
    """Say what model made the vectors of the open collection."""
    if not has_collection():
        return "There is no collection yet: it will be made with the model below."
    encoders = searcher().collection.encoders()
    if not encoders:
        return "This collection has no vectors yet: they will be made with the model below."
    made = "; ".join(f"{each.pooling}: {each.fingerprint.get('model', 'a foreign model')}" for each in encoders)
    return (
        f"This collection's vectors ({made}) are kept up with the model that made them. To change it, choose another "
        "one below, then embed everything anew in the Library."
    )


def _show_language_model() -> None:
    with st.form("llm", border=True):
        st.subheader("Language model", anchor=False)
        st.caption("Without one, Ask quotes the sentences that answer, word for word, and nothing leaves this machine.")
        named = st.text_input("Provider and model", value=choices().llm, key="llm-name", placeholder="ollama:qwen3")
        st.caption(
            "For example ollama:NAME for a model on this machine. With a provider elsewhere, such as openai:NAME, the "
            "question and the passages found for it are sent there. Keys are read from the environment, never kept."
        )
        if st.form_submit_button("Use", type="primary", key="use-llm"):
            with attempt():
                chosen = (named or "").strip()
                if chosen and ":" not in chosen:
                    raise ValueError(
                        f"{chosen} names no provider: write for example ollama:{chosen}, or leave it empty."
                    )
                if chosen:
                    _check_language_model(chosen)
                choose(llm=chosen)
                st.rerun()


def _check_language_model(llm: str) -> None:
    """Refuse a provider that is not known, a package or a key that is missing; whether it answers, a question tells."""
    from lmk_rag.answering.chat import Chat, ChatError  # loads LangChain, which the page itself can do without

    try:
        Chat.load(llm)
    except ChatError as error:
        raise ValueError(str(error)) from error


def main() -> None:
    """Show the page."""
    with attempt(), st.container(width=760):
        _show_collection()
        _show_model()
        _show_language_model()
        st.caption(
            "These settings hold for every window until the app is stopped. The next start opens the collection that "
            "LMK_RAG_COLLECTION names, with no language model."
        )


through_app()
main()
