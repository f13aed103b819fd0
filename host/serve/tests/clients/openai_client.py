"""Drives a server with `openai`: models, chat completions and responses. The arguments are the server's address and a
key."""

import sys

import openai

client = openai.OpenAI(base_url=f"{sys.argv[1]}/v1", api_key=sys.argv[2], max_retries=2)


def user(text):
    return {"role": "user", "content": text}


# Models
assert [model.id for model in client.models.list()] == ["ask", "count", "echo", "slow"]
assert client.models.retrieve("echo").owned_by == "hotcell"

# A question is what the assistant says; the next message answers it
said = [user("hi")]
reply = client.chat.completions.create(model="ask", messages=said)
assert reply.choices[0].message.content == "Who asks?" and reply.choices[0].finish_reason == "stop", reply
said += [reply.choices[0].message, user("Ada")]
reply = client.chat.completions.create(model="ask", messages=said)
assert reply.choices[0].message.content == "hello Ada", reply

# A thread keeps its state; what is said another time branches off
said = [user("more")]
reply = client.chat.completions.create(model="count", messages=said)
assert reply.choices[0].message.content == "1", reply
said += [reply.choices[0].message, user("more")]
for _ in range(2):
    again = client.chat.completions.create(model="count", messages=said)
    assert again.choices[0].message.content == "2", again
said += [again.choices[0].message, user("more")]
assert client.chat.completions.create(model="count", messages=said).choices[0].message.content == "3"

# The same in pieces, with what models say meanwhile
chunks = list(
    client.chat.completions.create(
        model="slow", messages=[user("x")], stream=True, stream_options={"include_usage": True}
    )
)
deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
assert "".join(delta.content or "" for delta in deltas) == "reply1 reply2", chunks
assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "reply1\n\nreply2", chunks
assert chunks[-2].choices[0].finish_reason == "stop", chunks
assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (2, 2), chunks

# Responses
reply = client.responses.create(model="ask", input="hi", metadata={"ticket": "7"})
assert reply.output_text == "Who asks?" and reply.status == "completed" and reply.metadata == {"ticket": "7"}, reply
answered = client.responses.create(input="Bo", previous_response_id=reply.id)
assert answered.output_text == "hello Bo" and answered.previous_response_id == reply.id, answered
assert client.responses.retrieve(reply.id).output_text == "Who asks?"
assert client.responses.retrieve(answered.id).output_text == "hello Bo"
try:
    client.responses.create(input="Eve", previous_response_id=reply.id)
    raise AssertionError("a second answer")
except openai.ConflictError as error:
    assert error.code == "question_closed", error
first = client.responses.create(model="count", input="more")
second = client.responses.create(model="count", input="more", previous_response_id=first.id)
other = client.responses.create(model="count", input="more", previous_response_id=first.id)
assert [one.output_text for one in (first, second, other)] == ["1", "2", "2"]
assert client.responses.create(input="more", previous_response_id=second.id).output_text == "3"
with client.responses.stream(model="slow", input="x") as stream:
    kinds = [event.type for event in stream]
    final = stream.get_final_response()
assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
assert "response.reasoning_text.delta" in kinds and "response.output_text.delta" in kinds, kinds
assert final.output_text == "reply3 reply4" and final.usage.total_tokens == 4, final
started = client.responses.create(model="ask", input="x", background=True)
while client.responses.retrieve(started.id).status == "in_progress":
    pass
assert client.responses.cancel(started.id).status == "cancelled"
client.responses.delete(started.id)
try:
    client.responses.retrieve(started.id)
    raise AssertionError("it is removed")
except openai.NotFoundError:
    pass

# What is not done is refused by name
for name, value in {"n": 2, "temperature": 0.5, "logprobs": True, "tools": [{"type": "function", "function": {"name": "x"}}]}.items():
    try:
        client.chat.completions.create(model="echo", messages=[user("x")], **{name: value})
        raise AssertionError(f"{name} is refused")
    except openai.BadRequestError as error:
        assert error.param == name and error.code == "unsupported_parameter", error
try:
    client.chat.completions.create(model="nobody", messages=[user("x")])
    raise AssertionError("there is no such model")
except openai.NotFoundError as error:
    assert error.code == "model_not_found", error
print("driven")
