"""Drives a server with `a2a-proof` and `a2a-sdk`: cards, tasks, streams, questions and errors, over both bindings and in both
versions. The arguments are the server's address and a port to which the agent `ask` may post."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import new_message, new_text_part
from a2a.types import (
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

URL, PORT = sys.argv[1:]
BINDINGS = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")]


def proof():
    """`a2a-proof` passes with both bindings."""
    here = Path(__file__).parent
    for transport in ["JSONRPC", "HTTP+JSON"]:
        environment = {**os.environ, "URL": f"{URL}/a2a/ask", "TRANSPORT": transport, "PUSH_PORT": PORT}
        command = [Path(sys.executable).parent / "a2a-proof", "run", here / "a2a_proof.yaml"]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr


async def client(http, agent, binding, version):
    card = await A2ACardResolver(http, f"{URL}/a2a/{agent}").get_agent_card()
    interfaces = [one for one in card.supported_interfaces if (one.protocol_binding, one.protocol_version) == (binding, version)]
    assert len(interfaces) == 1, card
    only = AgentCard()
    only.CopyFrom(card)
    del only.supported_interfaces[:]
    only.supported_interfaces.append(AgentInterface(url=interfaces[0].url, protocol_binding=binding, protocol_version=version))
    config = ClientConfig(streaming=True, httpx_client=http, supported_protocol_bindings=[binding])
    return ClientFactory(config).create(only)


async def fails(error, doing):
    try:
        await doing
    except error:
        return
    raise AssertionError(f"{error} is expected")


async def send(client, text, **ids):
    message = new_message([new_text_part(text)], role=Role.ROLE_USER, **ids)
    return [event async for event in client.send_message(SendMessageRequest(message=message))]


async def drive(binding, version):
    headers = {"A2A-Version": version}
    async with httpx.AsyncClient(trust_env=False, timeout=120, headers=headers) as http:
        ask = await client(http, "ask", binding, version)
        events = await send(ask, "hi")
        task = events[0].task
        assert task.status.state in (TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_INPUT_REQUIRED), events
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, events
        found = await ask.get_task(GetTaskRequest(id=task.id))
        assert found.status.message.parts[0].text == "Who asks?" and found.context_id == task.context_id, found
        # What is said without naming the task is no answer.
        await fails(UnsupportedOperationError, send(ask, "Eve", context_id=task.context_id))
        events = await send(ask, "Ada", task_id=task.id, context_id=task.context_id)
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
        made = [event.artifact_update.artifact for event in events if event.HasField("artifact_update")]
        assert [one.parts[0].text for one in made] == ["hello Ada"], events
        found = await ask.get_task(GetTaskRequest(id=task.id))
        assert [message.parts[0].text for message in found.history] == ["hi", "Who asks?", "Ada"], found
        await fails(UnsupportedOperationError, send(ask, "Bo", task_id=task.id))
        await fails(TaskNotCancelableError, ask.cancel_task(CancelTaskRequest(id=task.id)))
        await fails(TaskNotFoundError, ask.get_task(GetTaskRequest(id="nobody")))

        # A context keeps what was said in it
        count = await client(http, "count", binding, version)
        context = f"context-{binding[:4]}-{version}"
        for number in (1, 2):
            events = await send(count, "more", context_id=context)
            (made,) = [event.artifact_update.artifact for event in events if event.HasField("artifact_update")]
            assert made.parts[0].text == str(number), events
        if version == "1.0":
            listed = await count.list_tasks(ListTasksRequest(context_id=context, page_size=1))
            assert len(listed.tasks) == 1 and listed.total_size == 2 and listed.next_page_token, listed
            listed = await count.list_tasks(ListTasksRequest(context_id=context, page_token=listed.next_page_token))
            assert len(listed.tasks) == 1 and not listed.next_page_token, listed
        await fails(TaskNotFoundError, count.get_task(GetTaskRequest(id=task.id)))

        # Addresses that are told: only where the operator lets the agent post
        waiting = (await send(ask, "hi"))[0].task
        config = TaskPushNotificationConfig(task_id=waiting.id, id="mine", url=f"http://127.0.0.1:{PORT}/x", token="secret")
        made = await ask.create_task_push_notification_config(config)
        assert made.id == "mine" and made.url == config.url, made
        which = GetTaskPushNotificationConfigRequest(task_id=waiting.id, id="mine")
        assert (await ask.get_task_push_notification_config(which)).url == config.url
        config.url = "http://169.254.169.254/latest"
        await fails(InvalidParamsError, ask.create_task_push_notification_config(config))
        followed = [event async for event in ask.subscribe(SubscribeToTaskRequest(id=waiting.id))]
        assert followed[0].HasField("task"), followed
        assert (await ask.cancel_task(CancelTaskRequest(id=waiting.id))).status.state == TaskState.TASK_STATE_CANCELED


proof()
for binding, version in BINDINGS:
    asyncio.run(drive(binding, version))
print("driven")
