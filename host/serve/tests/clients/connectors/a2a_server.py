"""An agent of `a2a-sdk` that measures texts. The arguments are a port and the version of the protocol."""

import asyncio
import sys

import uvicorn
from a2a.helpers import new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette


class Measure(AgentExecutor):
    async def execute(self, context, queue):
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        if not context.current_task:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            task = Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
            await queue.enqueue_event(task)
        given = [MessageToDict(part.data) for part in context.message.parts if part.HasField("data")]
        text = given[0]["text"]
        await updater.start_work()
        if text == "ask":
            return await updater.requires_input(updater.new_agent_message([new_text_part("which one?")]))
        if text == "fail":
            return await updater.failed(updater.new_agent_message([new_text_part("no such text")]))
        if text == "slow":
            await asyncio.sleep(1)
        await updater.add_artifact([new_data_part({"length": len(text)})], name="length")
        await updater.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


port, version = int(sys.argv[1]), sys.argv[2]
card = AgentCard(
    name="meter",
    description="Measures texts",
    version="1",
    default_input_modes=["application/json"],
    default_output_modes=["application/json"],
    capabilities=AgentCapabilities(streaming=False),
    supported_interfaces=[
        AgentInterface(url=f"http://127.0.0.1:{port}/rpc", protocol_binding="JSONRPC", protocol_version=version)
    ],
    skills=[AgentSkill(id="measure", name="measure", description="Measures a text", tags=["text"])],
)
handler = DefaultRequestHandler(Measure(), InMemoryTaskStore(), card)
routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning")
