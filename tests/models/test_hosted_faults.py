"""What models behind a provider's interface make of every fault, over real sockets."""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Callable
from typing import TypeAlias

import anyio
import pytest

from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.inquiry import Query, Reply, Role
from theodolite.core.reading import Cause
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.hosted.breaker import Breaker
from theodolite.models.hosted.retry import Retry
from theodolite.models.openai import OpenAIModel
from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Responds, Says, Scripted

Hosted: TypeAlias = OpenAIModel | AnthropicModel

KEY = "sk-test-5Bq0Vw7Yx2"
QUICK = Retry(attempts=3, first=0.001, longest=0.002, jitter=0.0)
QUESTION = Query(role=Role.SUBJECT, prompt="May a refund be paid?")


def chat(provider: FakeProvider, **settings: object) -> OpenAIModel:
    return OpenAIModel("m-1", base_url=provider.base_url, **{"api_key": KEY, "retry": QUICK, **settings})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as a settings file gives them


def responses(provider: FakeProvider, **settings: object) -> OpenAIModel:
    return chat(provider, api="responses", **settings)


def messages(provider: FakeProvider, **settings: object) -> AnthropicModel:
    return AnthropicModel("m-1", base_url=provider.url, **{"api_key": KEY, "retry": QUICK, **settings})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as above


Make: TypeAlias = Callable[..., Hosted]
every = pytest.mark.parametrize("make", [chat, responses, messages])


def ask(model: Hosted, query: Query = QUESTION) -> Reply:
    return anyio.run(model.ask, query)


def answered(make: Make, said: Scripted, query: Query = QUESTION, **settings: object) -> tuple[Reply, Asked]:
    with FakeProvider(said) as provider:
        reply = ask(make(provider, **settings), query)
        return reply, provider.asked[0]


def failed(make: Make, said: Scripted, query: Query = QUESTION, **settings: object) -> ModelError:
    with FakeProvider(said) as provider, pytest.raises(ModelError) as raised:
        ask(make(provider, **settings), query)
    return raised.value


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)


CHOICE = Query(role=Role.JUDGE, prompt="Is this the same?", options=("yes", "no", "cannot say"))


# -- faults -----------------------------------------------------------------------------------------------------------


def cut(make: Make) -> str:
    if make is chat:
        return "length"
    return "max_output_tokens" if make is responses else "max_tokens"


@every
def test_an_answer_that_was_cut_is_malformed_and_not_asked_for_again(make: Make) -> None:
    with FakeProvider(Says(text="It may", finish=cut(make))) as provider, pytest.raises(ModelError) as raised:
        ask(make(provider))
    assert raised.value.cause is Cause.MALFORMED
    assert "was cut" in str(raised.value)
    assert "max_tokens" in str(raised.value)
    assert len(provider.asked) == 1


@every
def test_a_letter_that_was_cut_is_still_a_letter(make: Make) -> None:
    reply, _ = answered(make, Says(text="B. The", finish=cut(make)), CHOICE)
    assert reply.draws[0].text == "no"


@every
def test_an_answer_that_the_provider_withholds_is_an_error(make: Make) -> None:
    finish = "refusal" if make is messages else "content_filter"
    error = failed(make, Says(text="", finish=finish))
    assert error.cause is Cause.ERROR
    assert "filter" in str(error) or "classifiers" in str(error)


JUNK: dict[str, tuple[Responds, str]] = {
    "nothing": (Responds(), "the answer is empty"),
    "a web page": (Responds(body="<!doctype html><p>Welcome", headers={"content-type": "text/html"}), "web page"),
    "no JSON": (Responds(body="upstream said so"), "cannot be read: JSON is malformed"),
    "half of it": (Responds(body='{"choices": [{"mess'), "cannot be read"),
    "not a number": (Responds(body='{"choices": NaN}'), "cannot be read"),
    "not an object": (Responds(body="[1, 2]"), "Expected object, got array"),
    "null": (Responds(body="null"), "Expected object, got null"),
    "not UTF-8": (Responds(body=b'{"choices": "\xff"}'), "cannot be read"),
    "very deep": (Responds(body="[" * 100_000), "cannot be read"),
    "wrong types": (
        Responds(body='{"choices": [{"message": {"content": 5}}], "output": 5, "content": 5}'),
        "Expected ",
    ),
    "a number beyond all": (
        Responds(body='{"output": [], "content": [], "usage": {"input_tokens": 1e999}}'),
        "the answer",
    ),
    "no answer in it": (Responds(body='{"choices": []}'), "the answer "),
    "a stream": (
        Responds(body='data: {"choices": []}\n\n', headers={"content-type": "text/event-stream"}),
        "malformed",
    ),
}


@every
@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_malformed_and_says_where_and_is_not_asked_for_again(make: Make, junk: str) -> None:
    said, told = JUNK[junk]
    with FakeProvider(said) as provider, pytest.raises(ModelError) as raised:
        ask(make(provider))
    assert raised.value.cause is Cause.MALFORMED
    assert told in str(raised.value)
    assert provider.url in str(raised.value)
    assert len(provider.asked) == 1


@every
def test_a_body_without_end_is_given_up(make: Make) -> None:
    body = b'{"choices": "' + b"x" * (50 * 2**20) + b'"}'
    with FakeProvider(Responds(body=body)) as provider, pytest.raises(ModelError, match="more than 16777216") as raised:
        ask(make(provider))
    assert raised.value.cause is Cause.MALFORMED
    with FakeProvider(Responds(status=400, body=body)) as provider, pytest.raises(ModelError, match="more than"):
        ask(make(provider))


@every
def test_a_compressed_body_is_not_unpacked(make: Make) -> None:
    error = failed(make, Responds(body=b"\x1f\x8b", headers={"content-encoding": "gzip"}))
    assert error.cause is Cause.MALFORMED
    assert "compresses" in str(error)


def test_an_error_in_place_of_an_answer_is_an_error() -> None:
    error = failed(chat, Responds(body='{"error": {"message": "no upstream", "code": 502}}'))
    assert (error.cause, "code 502" in str(error)) == (Cause.ERROR, True)
    body = '{"output": [], "status": "failed", "error": {"code": "server_error", "message": "x"}}'
    error = failed(responses, Responds(body=body))
    assert (error.cause, "server_error" in str(error)) == (Cause.ERROR, True)


def test_a_response_that_is_not_finished_is_malformed() -> None:
    error = failed(responses, Responds(body='{"output": [], "status": "queued"}'))
    assert (error.cause, "queued" in str(error)) == (Cause.MALFORMED, True)


REFUSED: dict[int, str] = {
    301: "name that one as base_url",
    400: "refuses the request",
    401: "does not take the API key: look at api_key and the variable",
    402: "billing",
    403: "does not let this key use m-1",
    404: "knows no model m-1, or has no such path: look at the model's name and at base_url",
    413: "too long",
    422: "refuses the request",
}


@every
@pytest.mark.parametrize("status", REFUSED)
def test_a_refusal_is_an_error_that_says_what_to_do_and_is_not_tried_again(make: Make, status: int) -> None:
    body = json.dumps({"type": "error", "error": {"type": "invalid", "message": "because\nof this"}})
    said = Responds(status=status, body=body, headers={"location": "http://127.0.0.1:9/"})
    with FakeProvider(said) as provider, pytest.raises(ModelError) as raised:
        ask(make(provider))
    assert raised.value.cause is Cause.ERROR
    assert REFUSED[status] in str(raised.value)
    assert str(raised.value).endswith(f"(HTTP {status}): because of this")
    assert provider.url in str(raised.value)
    assert len(provider.asked) == 1


@every
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_a_passing_fault_is_tried_again(make: Make, status: int) -> None:
    with FakeProvider([Responds(status=status), Responds(status=status), "yes"]) as provider:
        assert ask(make(provider)).draws[0].text == "yes"
    assert len(provider.asked) == 3
    error = failed(make, Responds(status=status))
    assert (error.cause, f"(HTTP {status}), at attempt 3" in str(error)) == (Cause.ERROR, True)


@every
def test_a_provider_that_asks_to_wait_is_waited_for(make: Make) -> None:
    busy = Responds(status=429, headers={"retry-after": "0.1"})
    with FakeProvider([busy, "yes"]) as provider:
        assert ask(make(provider)).draws[0].text == "yes"
    first, second = provider.times
    assert second - first >= 0.1


@every
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "120"}, "120 s"),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT", "date": "Fri, 31 Dec 1999 23:58:59 GMT"}, "60 s"),
    ],
)
def test_a_wait_that_is_too_long_is_named_and_not_begun(make: Make, headers: dict[str, str], wait: str) -> None:
    error = failed(make, Responds(status=429, headers=headers), timeout=5.0)
    assert error.cause is Cause.ERROR
    assert f"is asked too often (HTTP 429); it asks to wait {wait}, and " in str(error)


@every
def test_a_provider_that_says_not_to_try_again_is_believed(make: Make) -> None:
    with FakeProvider(Responds(status=503, headers={"x-should-retry": "false"})) as provider, pytest.raises(ModelError):
        ask(make(provider))
    assert len(provider.asked) == 1


def test_an_account_without_money_is_not_waited_for() -> None:
    body = json.dumps({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}})
    with FakeProvider(Responds(status=429, body=body)) as provider, pytest.raises(ModelError, match="billing"):
        ask(chat(provider))
    assert len(provider.asked) == 1


@every
def test_a_model_that_is_released_under_its_caller_fails_with_a_model_error(make: Make) -> None:
    async def asked(model: Hosted) -> None:
        with pytest.raises(ModelError):
            await model.ask(QUESTION)

    async def work(model: Hosted) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(asked, model)
            while not provider.asked:  # noqa: ASYNC110 - by a thread of the provider's
                await anyio.sleep(0.005)
            await model.release()

    with FakeProvider(Breaks(Phase.REQUEST, "hang")) as provider:
        anyio.run(work, make(provider, retry=Retry(attempts=1), timeout=5.0))


@every
def test_an_error_that_no_sdk_has_announced_is_a_model_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment that is none: the connection's library raises a ValueError of its own."""
    with FakeProvider("yes") as provider:
        model = make(provider)
        monkeypatch.setenv("http_proxy", "nonsense://127.0.0.1")
        monkeypatch.setenv("NO_PROXY", "")
        with pytest.raises(ModelError, match="could not be asked, for a ValueError in the provider's SDK"):
            ask(model)


@every
def test_a_provider_that_hangs_is_a_timeout(make: Make) -> None:
    error = failed(make, Breaks(Phase.REQUEST, "hang"), timeout=0.1)
    assert (error.cause, "no answer within 0.1 s" in str(error)) == (Cause.TIMEOUT, True)


@every
def test_a_provider_that_is_down_is_left_alone_for_a_while(make: Make) -> None:
    provider = FakeProvider("yes")
    provider.close()
    model = make(provider, breaker=Breaker(failures=2, rest=60.0))
    for _ in range(2):
        with pytest.raises(ModelError, match=r"^cannot connect to .*: is base_url right, and the server up\?"):
            ask(model)
    with pytest.raises(ModelError, match=r"^not asked: 2 requests in a row failed, .* in (60\.0|59\.\d) s$"):
        ask(model)


# -- secrets ----------------------------------------------------------------------------------------------------------


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


@every
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_key_that_a_provider_repeats_is_shown_to_nobody(
    make: Make, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}})
    error = failed(make, Responds(status=status, body=echo))
    assert "Incorrect API key provided: [key]." in str(error)
    assert KEY not in told(error)
    assert KEY not in caplog.text


@every
@pytest.mark.parametrize("status", [400, 500])
def test_a_prompt_that_a_provider_repeats_reaches_no_log_and_no_traceback(
    make: Make, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    secret = "Anna's order"
    prompt = f"{'word ' * 50}{secret}"  # more than is quoted of what a provider says
    echo = json.dumps({"error": {"message": f"cannot answer: {prompt}"}})
    error = failed(make, Responds(status=status, body=echo), Query(role=Role.SUBJECT, prompt=prompt))
    assert "cannot answer: word" in str(error)
    try:
        raise error
    except ModelError:
        logging.getLogger("host").exception("a host that logs what it catches")
    assert len(caplog.records) > 1
    assert secret not in "".join(f"{vars(record)}{record.exc_text}" for record in caplog.records)
    assert secret not in caplog.text + told(error)
    quoted = [record for record in caplog.records if "cannot answer" in str(vars(record)) and record.name != "host"]
    assert quoted == []


@every
def test_no_model_shows_its_key(make: Make) -> None:
    with FakeProvider("yes") as provider:
        model = make(provider)
    assert repr(model) in {f"OpenAIModel('m-1' at {provider.base_url})", f"AnthropicModel('m-1' at {provider.url})"}
    assert KEY not in str(vars(model))


@every
def test_an_address_with_a_password_is_shown_without(make: Make) -> None:
    with FakeProvider(Responds(status=404, body='{"error": "hunter2"}')) as provider:
        url = provider.base_url.replace("//", "//ada:hunter2@")
        model = type(make(provider))("m-1", base_url=url, api_key=KEY)
        with pytest.raises(ModelError) as raised:
            ask(model)
    assert "hunter2" not in told(raised.value) + repr(model)


@pytest.mark.parametrize("model", [OpenAIModel, AnthropicModel])
@pytest.mark.parametrize("key", ["sk-1\n", "sk-é", " sk-1", "sk\x00"])
def test_a_key_that_fits_no_header_is_refused_at_once_and_not_shown(model: type[Hosted], key: str) -> None:
    with pytest.raises(ConfigError, match="no HTTP header takes") as raised:
        model("m-1", api_key=key)
    assert key not in told(raised.value)


@pytest.mark.parametrize("model", [OpenAIModel, AnthropicModel])
@pytest.mark.parametrize("url", ["localhost:8080", "ftp://localhost/v1", "http://", "http://[::1", "http://x:port/"])
def test_an_address_that_is_none_is_refused_at_once(model: type[Hosted], url: str) -> None:
    with pytest.raises(ConfigError, match="base_url is no address"):
        model("m-1", api_key=KEY, base_url=url)


@pytest.mark.parametrize(
    ("model", "variable"), [(OpenAIModel, "OPENAI_API_KEY"), (AnthropicModel, "ANTHROPIC_API_KEY")]
)
def test_without_a_key_it_says_which_variable_is_looked_at(
    model: type[Hosted], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=rf"for m-1: set the variable {variable}, or name another as api_key_env"):
        model("m-1")
    monkeypatch.setenv(variable, KEY)
    with FakeProvider("yes") as provider:
        monkeypatch.setenv(
            variable.replace("API_KEY", "BASE_URL"), provider.base_url if model is OpenAIModel else provider.url
        )
        ask(model("m-1"))
    assert KEY in provider.asked[0].headers.get("x-api-key", "") + provider.asked[0].headers.get("authorization", "")


@every
@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"max_concurrency": 0}, "max_concurrency=0"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"timeout": 0.0}, "timeout of 0.0"),
    ],
)
def test_settings_that_cannot_hold_are_refused(make: Make, settings: dict[str, float], match: str) -> None:
    with FakeProvider("yes") as provider, pytest.raises(ConfigError, match=match):
        make(provider, **settings)


@pytest.mark.parametrize("model", [OpenAIModel, AnthropicModel])
def test_a_model_without_a_name_is_refused(model: type[Hosted]) -> None:
    with pytest.raises(ConfigError, match="needs a name"):
        model("", api_key=KEY)


@pytest.mark.parametrize(
    ("settings", "match"),
    [({"api": "completions"}, "neither"), ({"top_logprobs": 21}, "up to 20"), ({"draws_at_once": 0}, "draws nothing")],
)
def test_settings_that_no_openai_takes_are_refused(settings: dict[str, object], match: str) -> None:
    with FakeProvider("yes") as provider, pytest.raises(ConfigError, match=match):
        chat(provider, **settings)


@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("http://api.openai.com/v1", "max_completion_tokens"),
        ("http://x.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("http://openai.com.example/v1", "max_tokens"),
    ],
)
def test_openai_s_own_models_are_asked_with_the_field_that_all_of_them_know_through_a_proxy(
    place: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProvider("yes") as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        ask(OpenAIModel("m-1", api_key=KEY, base_url=place))
    assert proxy.asked[0].path == f"{place}/chat/completions"
    assert proxy.asked[0].body[field] == 1024


TELLING: list[tuple[Make, Callable[[str], object]]] = [
    (chat, lambda word: {"error": {"code": word}}),
    (responses, lambda word: {"status": word, "output": []}),
    (responses, lambda word: {"status": "failed", "error": {"code": word}, "output": []}),
    (responses, lambda word: {"status": "incomplete", "incomplete_details": {"reason": word}, "output": []}),
]


@pytest.mark.parametrize("word", [KEY, "\x1b[31mred\n", "x" * 100_000])
@pytest.mark.parametrize(("make", "told"), TELLING)
def test_what_a_response_says_of_itself_is_told_without_the_key_on_one_short_line(
    make: Make, told: Callable[[str], object], word: str
) -> None:
    error = str(failed(make, Responds(body=json.dumps(told(word)), headers={"content-type": "application/json"})))
    assert KEY not in error
    assert error.isprintable()
    assert len(error) < 400
