"""Drives a server with `langgraph-sdk`: threads, runs, streams and interrupts. The argument is the server's address."""

import asyncio
import sys

import httpx
from langgraph_sdk import get_client


async def main(url):
    client = get_client(url=url)

    # Assistants
    found = await client.assistants.search(limit=50)
    assert {one["assistant_id"] for one in found} >= {"ask", "count", "echo", "slow"}, found
    assert (await client.assistants.get("echo"))["graph_id"] == "echo"
    graph = await client.assistants.get_graph("slow")
    assert [edge["source"] for edge in graph["edges"]] == ["__start__", "first", "second", "done"], graph
    assert "properties" in (await client.assistants.get_schemas("ask"))["input_schema"]
    assert await client.assistants.count(name="echo") == 1
    assert [one["version"] for one in await client.assistants.get_versions("echo")] == [1]

    # A thread keeps its state from run to run
    thread = (await client.threads.create(metadata={"who": "me"}))["thread_id"]
    for count in (1, 2):
        values = await client.runs.wait(thread, "count", input={"messages": [{"role": "user", "content": "more"}]})
        assert values["n"] == count, values
    state = await client.threads.get_state(thread)
    assert state["values"]["n"] == 2 and state["next"] == [], state
    history = await client.threads.get_history(thread)
    assert [one["values"]["n"] for one in history] == [2, 2, 1, 1], history
    older = await client.threads.get_history(thread, before=history[1]["checkpoint"])
    assert [one["values"]["n"] for one in older] == [1, 1], older
    runs = await client.runs.list(thread)
    assert [run["status"] for run in runs] == ["success", "success"] and runs[0]["assistant_id"] == "count", runs
    assert (await client.threads.update(thread, metadata={"x": 1}))["metadata"] == {"who": "me", "x": 1}
    assert [one["thread_id"] for one in await client.threads.search(metadata={"x": 1})] == [thread]
    assert await client.threads.count(metadata={"x": 1}, status="idle") == 1
    found = await client.threads.search(ids=[thread], values={"n": 2}, status="idle", sort_by="updated_at", sort_order="asc")
    assert [one["values"]["n"] for one in found] == [2], found
    then = await client.threads.get_state(thread, checkpoint=older[0]["checkpoint"])
    assert then["values"] == older[0]["values"], then
    assert await client.threads.get_state(thread, checkpoint_id=then["checkpoint"]["checkpoint_id"]) == then

    # A person is asked; a command answers
    thread = (await client.threads.create())["thread_id"]
    values = await client.runs.wait(thread, "ask", input={})
    (asked,) = values["__interrupt__"]
    assert asked["value"]["text"] == "Who asks?", asked
    assert (await client.threads.get(thread))["status"] == "interrupted"
    state = await client.threads.get_state(thread)
    assert state["next"] == ["name"] and state["tasks"][0]["interrupts"][0]["id"] == asked["id"], state
    values = await client.runs.wait(thread, "ask", command={"resume": "Ada"})
    assert values["name"] == "Ada" and values["__output__"] == "hello Ada", values
    try:
        await client.runs.wait(thread, "ask", command={"resume": "Eve"})
        raise AssertionError("a second answer")
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 409

    # The same as streams, with an answer by id
    thread = (await client.threads.create())["thread_id"]
    parts = [part async for part in client.runs.stream(thread, "ask", input={}, stream_mode=["values", "updates"])]
    assert [part.event for part in parts][0] == "metadata" and parts[-1].event == "end", parts
    (asked,) = [part.data["__interrupt__"][0] for part in parts if "__interrupt__" in part.data and part.event == "updates"]
    parts = [
        part
        async for part in client.runs.stream(
            thread, "ask", command={"resume": {asked["id"]: "Bo"}}, stream_mode=["values", "updates"]
        )
    ]
    assert {"name": {"name": "Bo"}} in [part.data for part in parts if part.event == "updates"], parts
    last = [part.data for part in parts if part.event == "values"][-1]
    assert last["name"] == "Bo" and last["__output__"] == "hello Bo", parts

    # Pieces of a model's text
    parts = [part async for part in client.runs.stream(None, "slow", input={"prompt": "x"}, stream_mode="messages-tuple")]
    texts = {}
    for part in parts:
        if part.event == "messages":
            piece, about = part.data
            texts[about["langgraph_node"]] = texts.get(about["langgraph_node"], "") + piece["content"]
    assert set(texts) == {"first", "second"} and all(text.startswith("reply") for text in texts.values()), parts

    # Runs in the background, joined and removed; the run of a creation is known from its headers
    created = []
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "echo", input={"prompt": "x"}, on_run_created=created.append)
    assert created == [{"run_id": run["run_id"], "thread_id": thread}], created
    assert (await client.runs.join(thread, run["run_id"]))["__output__"] == "you said x"
    parts = [part async for part in client.runs.join_stream(thread, run["run_id"])]
    assert [part.event for part in parts][-1] == "end", parts
    parts = [part async for part in client.runs.join_stream(thread, run["run_id"], stream_mode=["values", "updates"])]
    assert {"values", "updates"} <= {part.event for part in parts}, parts
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "success"
    await client.runs.delete(thread, run["run_id"])
    assert await client.runs.list(thread) == []
    await client.threads.delete(thread)

    # Several at once
    batch = await client.runs.create_batch([{"assistant_id": "echo", "input": {"prompt": text}} for text in "ab"])
    assert len(batch) == 2, batch
    await client.runs.cancel_many(run_ids=[run["run_id"] for run in batch])
    await client.runs.cancel_many(status="all")
    thread = (await client.threads.create())["thread_id"]
    assert await client.threads.prune([thread]) == {"pruned_count": 1}

    # What happens in a run
    modes = ["values", "updates", "tasks", "checkpoints", "debug", "events", "custom"]
    parts = [part async for part in client.runs.stream(None, "echo", input={"prompt": "x"}, stream_mode=modes)]
    assert {"tasks", "checkpoints", "debug", "events"} <= {part.event for part in parts}, parts

    # Without a thread
    values = await client.runs.wait(None, "echo", input={"prompt": "y"})
    assert values["__output__"] == "you said y", values

    # A new run in a thread that waits
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "ask", input={})
    values = await client.runs.wait(thread, "ask", input={}, multitask_strategy="rollback")
    assert "__interrupt__" in values and len(await client.runs.list(thread)) == 1, values
    values = await client.runs.wait(thread, "ask", input={}, multitask_strategy="interrupt")
    assert [run["status"] for run in await client.runs.list(thread)] == ["interrupted", "interrupted"]
    (run, _) = await client.runs.list(thread)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.threads.get(thread))["status"] == "idle"

    # What is not done is refused by name
    try:
        await client.runs.wait(thread, "ask", input={}, interrupt_before=["name"])
        raise AssertionError("it is refused")
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 422 and "interrupt_before" in error.response.text


asyncio.run(main(sys.argv[1]))
print("driven")
