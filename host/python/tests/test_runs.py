"""Runs of every language: results, questions, resuming, streams, Ctrl-C."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from conftest import DESK, GATE, TOOL_STEP, lookup_account

import hotcell
from hotcell import Agent, Host, HotcellError, InputError, RunInterrupted, RunWaiting

LOKI = """\
name: greets
version: "1.0"
start: ask
initial_state: {greeting: hello}
nodes:
  ask: {type: input, question: "Who are you?", state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "{{greeting}} {{who}}"}
"""

SHERMA = """\
manifest_version: 1
agents:
  counts:
    state: {fields: [{name: n, type: int, default: 1}]}
    graph:
      entry_point: add
      nodes: [{name: add, type: set_state, args: {values: {n: state.n + 1}}}]
      edges: [{source: add, target: __end__}]
"""


def gated(write, host):
    counted = []

    def count() -> int:
        """Counts."""
        counted.append(1)
        return len(counted)

    return Agent.from_yaml(write(GATE), host=host, tools=[count]), counted


def test_a_run_gives_its_state(write, host):
    run = Agent.from_yaml(write(SHERMA), host=host).run(state={"n": 41})
    assert (run.status, run.state["n"], run.failures) == ("completed", 42, ())
    assert run.check() is run


def test_what_an_agent_does_not_take_is_refused(write, host):
    agent = Agent.from_yaml(write(SHERMA), host=host)
    with pytest.raises(InputError, match="its fields are `n`"):
        agent.run(state={"m": 1})
    with pytest.raises(ValueError, match="has to be an object"):
        agent.run(state=[1])
    assert host.runs() == []


def test_a_question_waits_and_is_answered(write, host):
    agent = Agent.from_yaml(write(LOKI), host=host)
    run = agent.run()
    assert (run.status, run.output) == ("waiting", None)
    [question] = run.questions
    assert (question.text, question.node) == ("Who are you?", "ask")
    with pytest.raises(RunWaiting, match="Who are you"):
        run.check()
    assert [one.id for one in agent.questions(run)] == [question.id]
    agent.answer(run, "Bo", question=question.id)
    assert agent.resume(run).check().output == "hello Bo"
    with pytest.raises(HotcellError, match="completed"):
        agent.answer(run, "Bo")


def test_a_function_answers_questions(write, host):
    agent = Agent.from_yaml(write(LOKI), host=host)
    assert agent.run(ask=lambda question: question.text.split()[0]).output == "hello Who"
    assert agent.run(ask=lambda question: None).status == "waiting"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_function_that_fails_answers_nothing(write, host):
    def fails(question):
        raise RuntimeError("no idea")

    assert Agent.from_yaml(write(LOKI), host=host).run(ask=fails).status == "waiting"


def test_what_was_committed_is_not_done_again(write, host):
    agent, counted = gated(write, host)
    run = agent.run()
    agent.answer(run, "approved")
    state = asyncio.run(agent.resume_async(run)).check().state
    assert (state["counted"], state["decision"], state["again"]) == (1, "approved", 2)
    assert counted == [1, 1]


def test_a_run_needs_its_functions_to_go_on(write, tmp_path):
    host = Host(isolated=True, journal=tmp_path / "runs.db")
    agent, _ = gated(write, host)
    run = agent.run()
    agent.answer(run, "approved")
    with pytest.raises(hotcell.LoadError, match="a function of the program that began the run"):
        host.resume(run)
    later, counted = gated(write, Host(isolated=True, journal=tmp_path / "runs.db"))
    assert later.resume(run.id).check().state["again"] == 1


def test_runs_are_listed_paused_and_cancelled(write, host):
    agent = Agent.from_yaml(write(LOKI), host=host)
    run = agent.run()
    [listed] = host.runs(status="waiting")
    assert (listed.id, listed.graph) == (run.id, "greets")
    assert host.pause(run) == "paused"
    host.cancel(run)
    assert [one.status for one in host.runs()] == ["cancelled"]
    with pytest.raises(HotcellError, match="not a status"):
        host.runs(status="sleeping")


def test_a_failed_run_is_tried_again(write, host):
    broken = [True]

    def lookup_account(customer: str) -> str:
        """Finds."""
        if broken:
            raise RuntimeError("the database is down")
        return "found"

    agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[lookup_account])
    run = agent.run()
    assert run.status == "failed" and "the database is down" in run.error
    with pytest.raises(hotcell.RunFailed, match="the database is down"):
        run.check()


def test_events_come_in_order(write, host):
    agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[lookup_account])
    stream = agent.stream()
    with pytest.raises(HotcellError, match="has not begun"):
        stream.result
    events = list(stream)
    assert events[0]["event"] == "run_started" and events[0]["run"] == stream.run_id
    called = [event for event in events if event["event"] == "tool_called"]
    assert [one["tool"] for one in called] == ["lookup_account"]
    assert stream.result.state["account"]["balance"] == 12.5


def test_text_streams(write, host, model):
    model.replies = ["Hello there."]
    agent = Agent.from_yaml(write(DESK), host=host, tools=[lookup_account])

    async def follow():
        stream = agent.stream("hi")
        texts = [event["text"] async for event in stream if event["event"] == "model_text"]
        return "".join(texts), stream.result.output

    assert asyncio.run(follow()) == ("Hello there.", "Hello there.")
    assert model.requests[0]["stream"] is True


def test_a_stream_that_is_closed_stops_its_run(write, host):
    begun, let_go = threading.Event(), threading.Event()

    def lookup_account(customer: str) -> str:
        """Waits."""
        begun.set()
        let_go.wait(60)
        return "found"

    agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[lookup_account])
    with agent.stream() as stream:
        next(stream)
        assert begun.wait(60)
    let_go.set()
    for _ in stream:
        pass
    assert stream.result.status == "interrupted"
    with pytest.raises(RunInterrupted):
        stream.result.check()
    assert agent.resume(stream.result).check().state["account"] == "found"


def test_runs_are_awaited_side_by_side(write, host):
    """Each waits until all have begun."""
    all_in = threading.Barrier(8)

    def lookup_account(customer: str) -> int:
        """Meets the others."""
        return all_in.wait(60)

    agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[lookup_account])

    async def all_of_them():
        return await asyncio.gather(*(agent.run_async() for _ in range(8)))

    assert sorted(run.check().state["account"] for run in asyncio.run(all_of_them())) == list(range(8))


def test_whoever_cancels_an_await_stops_the_run(write, host):
    async def main():
        begun, stopped = asyncio.Event(), asyncio.Event()

        async def lookup_account(customer: str) -> str:
            """Waits for ever."""
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[lookup_account])
        task = asyncio.create_task(agent.run_async())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # What was awaited in this loop is not left running in it.
        await asyncio.wait_for(stopped.wait(), 60)

    asyncio.run(main())
    assert [run.status for run in host.runs()] == ["interrupted"]


def test_threads_of_the_program_may_run_agents_at_once(write, host):
    agent = Agent.from_yaml(write(SHERMA), host=host)
    found = []
    workers = [
        threading.Thread(target=lambda n=n: found.append(agent.run(state={"n": n}).state["n"])) for n in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(found) == list(range(1, 9))


def test_a_thread_goes_on_with_a_conversation(write, host, model):
    model.replies = ["Hi.", "Bo."]
    agent = Agent.from_yaml(write(DESK), host=host, tools=[lookup_account])
    agent.run("I am Bo", thread="bo").check()
    assert agent.run("Who am I?", thread="bo").check().output == "Bo."
    assert [one["content"] for one in model.requests[1]["messages"][1:]] == ["I am Bo", "Hi.", "Who am I?"]
    assert len(host.runs(thread="bo")) == 2


INTERRUPTED = """
import os, signal, sys, threading
from hotcell import Agent, Host

def lookup_account(customer: str) -> str:
    "Has the process interrupted, and waits."
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(20)
    return "late"

# Whatever began the tests may ignore the signal, as shells have it for what runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
agent = Agent.from_yaml(sys.argv[1], host=Host(isolated=True), tools=[lookup_account])
try:
    {run}
except KeyboardInterrupt:
    [run] = agent.runs()
    print(run.status)
"""


@pytest.mark.parametrize(
    "run",
    ["agent.run()", "list(agent.stream())", "import asyncio; asyncio.run(agent.run_async())"],
)
def test_ctrl_c_stops_the_run_and_is_raised(write, run):
    command = [sys.executable, "-c", INTERRUPTED.replace("{run}", run), str(write(TOOL_STEP))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    # Whoever iterates is not waited for.
    assert done.stdout.strip() in ("interrupted", "running"), done.stderr
    if "stream" not in run:
        assert done.stdout.strip() == "interrupted"


def test_a_forked_process_is_told_why_it_cannot(write, host):
    agent = Agent.from_yaml(write(SHERMA), host=host)
    agent.run()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            agent.run()
            told = "ran"
        except HotcellError as error:
            told = str(error)
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert "forked" in os.read(reader, 1000).decode()
    os.close(reader)


def test_a_process_ends_while_a_run_is_under_way(write):
    code = textwrap.dedent("""
        import sys, threading
        from hotcell import Agent, Host
        begun = threading.Event()
        def lookup_account(customer: str) -> str:
            "Never ends."
            begun.set()
            threading.Event().wait()
        agent = Agent.from_yaml(sys.argv[1], host=Host(isolated=True), tools=[lookup_account])
        stream = agent.stream()
        next(stream)
        begun.wait()
        print("done")
    """)
    done = subprocess.run(
        [sys.executable, "-c", code, str(write(TOOL_STEP))], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_scripts_run_sealed(write, host):
    """The cells are in the wheel."""
    write(
        "import json, os\nprint(json.dumps({'home': os.environ.get('HOME'), 'n': json.loads(os.environ['GRAPH_STATE'])['n'] + 1}))",
        "add.py",
    )
    graph = """\
name: scripted
version: "1.0"
start: add
initial_state: {n: 1, home: ""}
nodes:
  add: {type: script, script: add.py, next: done}
  done: {type: end, output: "{{n}} {{home}}"}
"""
    run = Agent.from_yaml(write(graph), host=host).run().check()
    assert run.state["n"] == 2 and run.state["home"] is None
    assert any(name == "add.py" for name in run.used_by), json.dumps(run.used_by)


def test_signals_of_others_are_left_alone(write, host):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:

        def lookup_account(customer: str) -> str:
            """Sends a signal that the program handles."""
            os.kill(os.getpid(), signal.SIGUSR1)
            return "found"

        agent = Agent.from_yaml(write(TOOL_STEP), host=host, tools=[lookup_account])
        assert agent.run().check().state["account"] == "found"
        assert seen == [1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_strangers_wrote_is_compiled_in_a_process_of_its_own(write, tmp_path):
    """A command that does nothing, which no cache has."""
    mark = os.urandom(8)
    module = bytes.fromhex("0061736d01000000010401600000030201000503010001")
    module += b"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" + bytes.fromhex("0a040102000b")
    module += bytes([0, 10, 1]) + b"m" + mark
    (tmp_path / "idle.wasm").write_bytes(module)
    graph = write(
        'name: idles\nversion: "1.0"\nstart: a\nnodes:\n  a: {type: script, script: idle.wasm, next: b}\n  b: {type: end, output: x}\n'
    )
    log = tmp_path / "log"
    starter = write(f'#!/bin/sh\necho started >> "{log}"\nexec "{sys.executable}" "$@"\n', "python-logged")
    starter.chmod(0o755)
    code = textwrap.dedent("""
        import sys
        sys.executable = sys.argv[2]
        from hotcell import Agent, Host
        run = Agent.from_yaml(sys.argv[1], host=Host(isolated=True)).run()
        print([failure.error for failure in run.failures])
    """)
    done = subprocess.run(
        [sys.executable, "-c", code, str(graph), str(starter)], capture_output=True, text=True, timeout=120
    )
    # It ran, and printed no JSON.
    assert "idle.wasm" in done.stdout and "JSON" in done.stdout, done.stdout + done.stderr
    assert log.read_text() == "started\n"
