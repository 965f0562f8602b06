"""Ask a server with one client as its users do, and print what it keeps of the replies; in the clients' environment.

    python asking.py CLIENT URL IMAGE

CLIENT is a function of this file. Each prints one JSON object per way of asking: the text, and the confidence from
where docs/serve.md says that it is.
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

QUESTION = "Is there a lesion?"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
Asked = Iterator[tuple[str, str, Any]]


def message(url: str, text: str = QUESTION) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}],
    }


def openai(base: str, image: str) -> Asked:
    from openai import LengthFinishReasonError, OpenAI

    client = OpenAI(base_url=base, api_key="none", max_retries=0)
    create = client.chat.completions.create
    asked = [message(image)]
    reply = create(model="dualread", messages=asked)
    yield "whole", reply.choices[0].message.content, reply.choices[0].dualread["confidence"]
    *_, last = stream = list(create(model="dualread", messages=asked, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    yield "stream", text, last.choices[0].dualread["confidence"]
    again = create(model="dualread", messages=[*asked, reply.choices[0].message, message(image)])
    yield "second turn", again.choices[0].message.content, again.choices[0].dualread["confidence"]
    with client.chat.completions.stream(model="dualread", messages=asked) as helper:
        try:
            [helped] = helper.get_final_completion().choices
        except LengthFinishReasonError as error:  # so the helper says that an answer was cut off
            [helped] = error.completion.choices
    yield "helper", helped.message.content, helped.message.dualread["confidence"]
    again = create(model="dualread", messages=[*asked, helped.message, message(image)])
    yield "turn after a stream", again.choices[0].message.content, again.choices[0].dualread["confidence"]
    none = create(model="dualread", messages=asked, tools=[TOOL], tool_choice="none")
    yield "tools of none", none.choices[0].message.content, none.choices[0].dualread["confidence"]


def litellm(base: str, image: str) -> Asked:
    import litellm

    def ask(messages: list[Any], **more: Any) -> Any:
        how = {"model": "openai/dualread", "api_base": base, "api_key": "none", "num_retries": 0}
        return litellm.completion(**how, messages=messages, **more)

    asked = [message(image)]
    reply = ask(asked)
    yield "whole", reply.choices[0].message.content, reply.usage.dualread[0]["confidence"]
    chunks = list(ask(asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    [*_, last] = [choice for chunk in chunks for choice in chunk.choices]
    yield "stream", text, last.logprobs.dualread["confidence"]
    for how, of in (("second turn", reply), ("turn after a stream", litellm.stream_chunk_builder(chunks))):
        again = ask([*asked, of.choices[0].message, message(image)])
        yield how, again.choices[0].message.content, again.usage.dualread[0]["confidence"]
    none = ask(asked, tools=[TOOL], tool_choice="none")
    yield "tools of none", none.choices[0].message.content, none.usage.dualread[0]["confidence"]


def langchain(base: str, image: str) -> Asked:
    from langchain_core.messages import AIMessageChunk, HumanMessage
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="dualread", base_url=base, api_key="none", max_retries=0)
    asked = [HumanMessage(content=message(image)["content"])]

    def confidence(reply: Any) -> Any:
        return reply.response_metadata["token_usage"]["dualread"][0]["confidence"]

    reply = model.invoke(asked)
    yield "whole", reply.content, confidence(reply)
    added: AIMessageChunk | None = None
    for chunk in model.stream(asked):
        added = chunk if added is None else added + chunk
    assert added is not None
    yield "stream", added.content, added.response_metadata["logprobs"]["dualread"]["confidence"]
    for how, of in (("second turn", reply), ("turn after a stream", added)):
        again = model.invoke([*asked, of, *asked])
        yield how, again.content, confidence(again)
    none = model.bind_tools([TOOL], tool_choice="none").invoke(asked)
    yield "tools of none", none.content, confidence(none)


def inspect(base: str, image: str) -> Asked:
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, GenerateConfig, get_model
    from inspect_ai.tool import ToolInfo
    from openai import LengthFinishReasonError

    config = GenerateConfig(stop_seqs=["\n\n\n"], max_retries=0)
    given = {"base_url": base, "api_key": "none", "config": config}
    model, streaming = (get_model("openai-api/local/dualread", **given, stream=stream) for stream in (False, True))
    asked = [ChatMessageUser(content=[ContentImage(image=image), ContentText(text=QUESTION)])]

    def confidence(output: Any, call: Any) -> Any:
        return call.response["choices"][0]["dualread"]["confidence"]

    async def ask(messages: list[Any], tools: Sequence[ToolInfo] = (), **more: int) -> tuple[str, Any]:
        made = await model.api.generate(messages, [*tools], "none", config.merge(more))
        output, call = made if isinstance(made, tuple) else (made, None)
        return output.choices[0].message, confidence(output, call)

    async def stream() -> tuple[str, Any]:
        try:
            _, call = await streaming.api.generate(asked, [], "none", config)
            kept = call.response["choices"][0]["message"]
        except LengthFinishReasonError as error:  # so openai's helper says that an answer was cut off
            kept = error.completion.choices[0].message.model_dump()
        return kept["content"], kept["dualread"]["confidence"]

    async def all_of_them() -> list[tuple[str, str, Any]]:
        reply, judged = await ask(asked)
        found = [("whole", reply.text, judged), ("stream", *await stream())]
        again, judged = await ask([*asked, reply, *asked])
        found.append(("second turn", again.text, judged))
        long, judged = await ask(asked, max_tokens=2048)  # lowered to what there is room for
        found.append(("long", long.text, judged))
        none, judged = await ask(asked, [ToolInfo(name="look", description="looks")])
        return [*found, ("tools of none", none.text, judged)]

    yield from asyncio.run(all_of_them())


def lm_eval(base: str, image: str) -> Asked:
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalChatCompletion

    model = LocalChatCompletion(base_url=f"{base}/chat/completions", model="dualread", tokenizer_backend=None)
    asked = [{"role": "user", "content": QUESTION}]
    examples = [*asked, {"role": "assistant", "content": "no"}, *asked]  # its --fewshot_as_multiturn
    for how, messages, given in (
        ("whole", asked, {"until": ["\n\n\n"]}),
        ("several stops", asked, {"until": ["\n\n\n", "</s>"], "max_gen_toks": 2048}),
        ("second turn", examples, {"until": ["\n\n\n"]}),
        ("tools of none", asked, {"until": ["\n\n\n"], "tools": [TOOL], "tool_choice": "none"}),
    ):
        prompt = model.apply_chat_template(messages)
        [text] = model.generate_until([Instance("generate_until", {}, (prompt, given), 0)], disable_tqdm=True)
        yield how, text, None


def stay_here(event: str, given: tuple[Any, ...]) -> None:
    """End this program where a client looks for another machine, such as that of a price list."""
    if event == "socket.getaddrinfo" and given[0] not in (None, "127.0.0.1", "localhost"):
        print(f"it asks for {given[0]}", file=sys.stderr, flush=True)
        os._exit(3)


def main(client: str, base: str, image: str) -> None:
    sys.addaudithook(stay_here)
    url = "data:image/png;base64," + base64.b64encode(Path(image).read_bytes()).decode()
    for how, text, confidence in {one.__name__: one for one in CLIENTS}[client](base, url):
        print(json.dumps({"how": how, "text": text, "confidence": confidence}), flush=True)


CLIENTS = (openai, litellm, langchain, inspect, lm_eval)

if __name__ == "__main__":
    main(*sys.argv[1:])
