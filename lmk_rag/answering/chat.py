"""A language model by its name, and whatever goes wrong with it as one sentence."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_TIMEOUT = 60
"""Seconds without a word from the model."""
_RETRIES = 1
_NO_KEY = "none"
"""Sent to a server of one's own, which asks for no key."""
_AT = re.compile(r"@(?=https?://)")
_UNKNOWN = "The language model {!r} is not known: write PROVIDER:MODEL, such as ollama:gemma3."
_EXTRA = ("langchain", "langchain-openai", "langchain-ollama")


class ChatError(Exception):
    """A language model cannot be had or does not answer; the message is one sentence."""


class Chat:
    """A chat model and the name that is shown for it."""

    def __init__(self, model: "BaseChatModel", name: str, url: str = "") -> None:
        self.model = model
        self.name = name
        self.url = url

    @classmethod
    def load(cls, llm: "str | BaseChatModel") -> "Chat":
        """Make a model ready; nothing is sent yet.

        Args:
            llm: ``PROVIDER:MODEL`` as LangChain's ``init_chat_model`` takes it (``ollama:gemma3``,
                ``openai:gpt-5.5``), with ``@URL`` for a server of one's own (``openai:gemma3@http://127.0.0.1:8080/v1``);
                without it OpenAI's client reads ``OPENAI_BASE_URL``. Or a chat model of LangChain's.

        Raises:
            ChatError: a package or a key is missing, or there is no such provider.
        """
        if not isinstance(llm, str):
            return cls(llm, str(llm._identifying_params.get("model_name") or type(llm).__name__))
        name, url = [*_AT.split(llm, maxsplit=1), ""][:2]
        if not name:
            raise ChatError(_UNKNOWN.format(name))
        try:
            from langchain.chat_models import init_chat_model

            return cls(init_chat_model(name, **_arguments(name, url)), name, url)
        except Exception as error:  # each provider's package has errors of its own
            raise ChatError(_sentence(error, name, url)) from error

    def stream(self, messages: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Ask, and yield the text as it comes.

        Raises:
            ChatError: it timed out, refused the connection, or failed otherwise.
        """
        try:
            for chunk in self.model.stream(list(messages)):
                text = str(chunk.text)
                if text:
                    yield text
        except Exception as error:  # each provider's package has errors of its own
            raise ChatError(_sentence(error, self.name, self.url)) from error

    def ask(self, messages: Sequence[tuple[str, str]]) -> str:
        """Ask, and return the whole text; raises as :meth:`stream` does."""
        return "".join(self.stream(messages))


def _arguments(name: str, url: str) -> dict[str, Any]:
    """Give what a provider's class is called with, beside the model's name."""
    provider = name.partition(":")[0]
    arguments: dict[str, Any] = {"temperature": 0.0}
    if url:
        arguments["base_url"] = url
    if provider == "ollama":
        return {**arguments, "client_kwargs": {"timeout": _TIMEOUT}}
    arguments |= {"timeout": _TIMEOUT, "max_retries": _RETRIES}
    own_server = url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    if provider == "openai" and own_server:
        arguments["use_responses_api"] = False  # what other servers know is chat completions
        if not os.environ.get("OPENAI_API_KEY"):
            arguments["api_key"] = _NO_KEY
    return arguments


def _sentence(error: BaseException, name: str, url: str) -> str:
    """Say what went wrong in one sentence, by the error and those that it came from."""
    causes = list(_chain(error))
    names = " ".join(type(each).__name__ for each in causes)
    status = next(filter(None, (getattr(each, "status_code", None) for each in causes)), None)
    said = " ".join(str(error).split())
    where = f" at {url}" if url else ""
    if any(isinstance(each, ImportError) for each in causes):
        package = re.search(r"pip install ([\w-]+)", said)  # LangChain names it
        command = "pip install 'lmk-rag[llm]'" if package is None or package[1] in _EXTRA else package[0]
        return f"The language model {name} needs a package that is not installed: run {command}."
    if "Missing credentials" in said or "api_key" in said or status in (401, 403):
        key = f"set {name.partition(':')[0].upper()}_API_KEY"
        return f"The language model {name} needs a key{', and the one given was refused' if status else ''}: {key}."
    if "infer model provider" in said or "Unsupported provider" in said:
        return _UNKNOWN.format(name)
    if "Timeout" in names:
        return f"The language model {name}{where} did not answer within {_TIMEOUT:g} seconds."
    if any(isinstance(each, ConnectionError) for each in causes) or "Connect" in names:
        return f"The language model {name}{where} cannot be reached: is its server running?"
    return f"The language model {name}{where} failed ({type(error).__name__}: {said[:200].rstrip('.')})."


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
