"""Writes configurations with `pyagentspec` into a folder: `generate.py FOLDER`.

Each configuration is written in every version that has what it uses, as JSON and as YAML; `NAME.VERSION.parts.json`
beside one holds what it needs handed in. Prints the number of configurations.
"""

import json
import sys
from pathlib import Path

from pyagentspec import Agent, AgentSpecSerializer, OciAgent
from pyagentspec.flows.edges import ControlFlowEdge, DataFlowEdge
from pyagentspec.flows.flow import Flow
from pyagentspec.flows.nodes import (
    AgentNode,
    ApiNode,
    BranchingNode,
    EndNode,
    FlowNode,
    InputMessageNode,
    LlmNode,
    MapNode,
    OutputMessageNode,
    StartNode,
    ToolNode,
)
from pyagentspec.flows.nodes.mapnode import ReductionMethod
from pyagentspec.llms import (
    LlmGenerationConfig,
    OciGenAiConfig,
    OllamaConfig,
    OpenAiCompatibleConfig,
    OpenAiConfig,
    VllmConfig,
)
from pyagentspec.llms.ociclientconfig import (
    OciClientConfigWithApiKey,
    OciClientConfigWithInstancePrincipal,
    OciClientConfigWithResourcePrincipal,
    OciClientConfigWithSecurityToken,
)
from pyagentspec.mcp import (
    MCPTool,
    SSEmTLSTransport,
    SSETransport,
    StdioTransport,
    StreamableHTTPmTLSTransport,
    StreamableHTTPTransport,
)
from pyagentspec.property import (
    BooleanProperty,
    DictProperty,
    FloatProperty,
    IntegerProperty,
    ListProperty,
    NullProperty,
    ObjectProperty,
    Property,
    StringProperty,
    UnionProperty,
)
from pyagentspec.tools import ClientTool, RemoteTool, ServerTool
from pyagentspec.versioning import AgentSpecVersionEnum as Version

VERSIONS = [Version.v25_4_1, Version.v25_4_2, Version.v26_1_0, Version.v26_1_2, Version.v26_3_1]


def text(name, **more):
    return StringProperty(title=name, **more)


def llm(name="llm", **more):
    return VllmConfig(id=name, name=name, url="http://llm.invalid/v1", model_id="m", **more)


def follow(source, target, branch=None):
    """A control edge."""
    name = f"{source.id}[{branch}]->{target.id}"
    return ControlFlowEdge(id=name, name=name, from_node=source, from_branch=branch, to_node=target)


def feed(source, output, target, name):
    """A data edge."""
    edge = f"{source.id}.{output}->{target.id}.{name}"
    return DataFlowEdge(
        id=edge, name=edge, source_node=source, source_output=output, destination_node=target, destination_input=name
    )


def line(name, nodes, data, **more):
    """A flow whose nodes follow each other."""
    edges = [follow(source, target) for source, target in zip(nodes, nodes[1:])]
    return Flow(
        id=name,
        name=name,
        start_node=nodes[0],
        nodes=nodes,
        control_flow_connections=edges,
        data_flow_connections=data,
        **more,
    )


def types():
    """Every kind of property, through a tool."""
    properties = [
        text("text", default="a", description="a text"),
        IntegerProperty(title="whole_number", default=3),
        FloatProperty(title="number", default=0.5),
        BooleanProperty(title="yes", default=True),
        NullProperty(title="nothing", default=None),
        ListProperty(title="lists", item_type=ListProperty(item_type=FloatProperty()), default=[[1.5], []]),
        DictProperty(title="dictionary", value_type=IntegerProperty(), default={}),
        ObjectProperty(title="object", properties={"a": text("a"), "b": BooleanProperty(title="b")}),
        UnionProperty(title="union", any_of=[StringProperty(), IntegerProperty(), NullProperty()], default=None),
        Property(json_schema={"title": "list_of_types", "type": ["string", "null"], "default": None}),
        Property(json_schema={"title": "anything"}),
    ]
    tool = ServerTool(id="tool", name="tool", inputs=properties, outputs=properties)
    start = StartNode(id="start", name="start", inputs=properties)
    node = ToolNode(id="node", name="node", tool=tool)
    end = EndNode(id="end", name="end", outputs=properties)
    names = [property.title for property in properties]
    data = [feed(start, name, node, name) for name in names] + [feed(node, name, end, name) for name in names]
    return line("types", [start, node, end], data)


def request():
    """A flow with a call over HTTP, with and without declared outputs."""
    start = StartNode(id="start", name="start", inputs=[text("id"), text("host")])
    call = ApiNode(
        id="call",
        name="call",
        url="http://{{host}}/things/{{ id }}",
        http_method="POST",
        data={"nested": {"list": ["{{id}}", 1, None]}},
        query_params={"q": "{{id}}"},
        headers={"X-Id": "{{id}}"},
        outputs=[text("name"), IntegerProperty(title="size", default=0)],
    )
    other = ApiNode(id="other", name="other", url="http://{{host}}", http_method="GET")
    end = EndNode(id="end", name="end", outputs=[text("name"), IntegerProperty(title="size"), text("response")])
    return line("request", [start, call, other, end], None)


def branches():
    """Branches, ends with names and defaults, a question and a message."""
    start = StartNode(id="start", name="start", inputs=[text("tier", default="none")])
    ask = InputMessageNode(id="ask", name="ask", message="What of {{tier}}?", outputs=[text("answer")])
    silent = InputMessageNode(id="silent", name="silent")
    gate = BranchingNode(id="gate", name="gate", mapping={"a": "gold", "b": "gold", "": "lead"}, inputs=[text("key")])
    say = OutputMessageNode(id="say", name="say", message="It is {{ answer }}")
    gold = EndNode(id="gold", name="gold", branch_name="gold", outputs=[text("of_gold")])
    other = EndNode(id="other", name="other", branch_name="other", outputs=[IntegerProperty(title="n", default=2)])
    edges = [
        follow(start, ask),
        follow(ask, silent),
        follow(silent, gate),
        follow(gate, say, "gold"),
        follow(gate, other, "lead"),
        follow(gate, other, "default"),
        follow(say, gold),
    ]
    data = [
        feed(start, "tier", ask, "tier"),
        feed(ask, "answer", gate, "key"),
        feed(ask, "answer", say, "answer"),
        feed(silent, "user_input", gold, "of_gold"),
    ]
    return Flow(
        id="branches",
        name="branches",
        description="branches",
        metadata={"colour": {"red": None}, "at": [1, 2]},
        start_node=start,
        nodes=[start, ask, silent, gate, say, gold, other],
        control_flow_connections=edges,
        data_flow_connections=data,
        outputs=[text("of_gold", default="lost"), IntegerProperty(title="n", default=7)],
    )


def adding(name):
    start = StartNode(
        id=f"{name}_start", name="start", inputs=[IntegerProperty(title="a"), IntegerProperty(title="b", default=1)]
    )
    tool = ServerTool(
        id=f"{name}_tool",
        name="add",
        inputs=[IntegerProperty(title="a"), IntegerProperty(title="b", default=1)],
        outputs=[IntegerProperty(title="sum"), text("shown")],
    )
    node = ToolNode(id=f"{name}_node", name="add", tool=tool)
    end = EndNode(id=f"{name}_end", name="end", outputs=[IntegerProperty(title="sum"), text("shown")])
    return line(name, [start, node, end], None)


def maps():
    """A flow that is mapped twice, with and without reducers, and run once."""
    inner = adding("inner")
    numbers = ListProperty(title="numbers", item_type=IntegerProperty())
    start = StartNode(id="start", name="start", inputs=[numbers, IntegerProperty(title="n")])
    every = MapNode(id="every", name="every", subflow=inner)
    some = MapNode(
        id="some",
        name="some",
        subflow=inner,
        reducers={"sum": ReductionMethod.SUM, "shown": ReductionMethod.APPEND},
        outputs=[
            IntegerProperty(title="collected_sum"),
            ListProperty(title="collected_shown", item_type=StringProperty()),
        ],
    )
    once = FlowNode(id="once", name="once", subflow=inner)
    end = EndNode(id="end", name="end", outputs=[IntegerProperty(title="total"), text("shown")])
    data = [
        feed(start, "numbers", every, "iterated_a"),
        feed(start, "n", every, "iterated_b"),
        feed(every, "collected_sum", some, "iterated_a"),
        feed(start, "numbers", some, "iterated_b"),
        feed(some, "collected_sum", once, "a"),
        feed(some, "collected_sum", end, "total"),
        feed(once, "shown", end, "shown"),
    ]
    return line("maps", [start, every, some, once, end], data)


def nested():
    """Flows in flows, the innermost used on two levels."""
    inner = adding("inner")
    middle_start = StartNode(id="middle_start", name="start", inputs=[IntegerProperty(title="a")])
    middle_node = FlowNode(id="middle_node", name="inner", subflow=inner)
    middle_end = EndNode(id="middle_end", name="end", outputs=[text("shown")], branch_name="done")
    middle = line("middle", [middle_start, middle_node, middle_end], None)
    start = StartNode(id="start", name="start", inputs=[IntegerProperty(title="a")])
    one = FlowNode(id="one", name="one", subflow=middle)
    two = FlowNode(id="two", name="two", subflow=inner)
    end = EndNode(id="end", name="end", outputs=[text("shown")])
    return Flow(
        id="nested",
        name="nested",
        start_node=start,
        nodes=[start, one, two, end],
        control_flow_connections=[follow(start, one), follow(one, two, "done"), follow(two, end)],
        data_flow_connections=None,
    )


def tools():
    """An agent with every kind of tool and transport."""
    transports = [
        StdioTransport(id="stdio", name="stdio", command="server", args=["-v"], env={"A": "b"}, cwd="/srv"),
        SSETransport(id="sse", name="sse", url="http://mcp.invalid/sse", headers={"X": "y"}),
        StreamableHTTPTransport(id="http", name="http", url="http://mcp.invalid/mcp"),
        SSEmTLSTransport(id="sse_tls", name="t", url="https://mcp.invalid", key_file="k", cert_file="c", ca_file="a"),
        StreamableHTTPmTLSTransport(
            id="http_tls", name="t", url="https://mcp.invalid", key_file="k", cert_file="c", ca_file="a"
        ),
    ]
    own = [
        ServerTool(id="server", name="server", description="d", inputs=[text("q")], outputs=[text("a")]),
        ClientTool(id="client", name="client", inputs=[], outputs=[BooleanProperty(title="ok")]),
        RemoteTool(
            id="remote",
            name="remote",
            url="http://api.invalid/{{path}}",
            http_method="GET",
            data={"k": "{{v}}"},
            outputs=[text("body")],
        ),
    ]
    mcp = [MCPTool(id=f"mcp_{t.id}", name=f"mcp_{t.id}", client_transport=t, inputs=[text("q")]) for t in transports]
    return Agent(
        id="tools",
        name="tools",
        llm_config=llm(default_generation_parameters=LlmGenerationConfig(temperature=0.2, max_tokens=9, top_p=0.5)),
        system_prompt="You help {{who}}.",
        tools=own + mcp,
        outputs=[text("answer"), IntegerProperty(title="score", default=1)],
    )


def agents():
    """One agent in two nodes, a flow as an agent, and models of every kind."""
    configs = [
        llm(),
        OllamaConfig(id="ollama", name="ollama", url="http://llm.invalid", model_id="m"),
        OpenAiConfig(id="openai", name="openai", model_id="m"),
        OpenAiCompatibleConfig(id="compatible", name="compatible", url="http://llm.invalid", model_id="m"),
    ]
    clerk = Agent(id="clerk", name="clerk", llm_config=configs[0], system_prompt="Be kind.", outputs=[text("answer")])
    nodes = [StartNode(id="start", name="start", inputs=[text("topic"), IntegerProperty(title="a")])]
    nodes += [AgentNode(id=f"clerk_{n}", name="clerk", agent=clerk) for n in (1, 2)]
    nodes += [
        LlmNode(id=f"ask_{config.id}", name="ask", llm_config=config, prompt_template="Write of {{ topic }}.")
        for config in configs
    ]
    nodes += [AgentNode(id="flow", name="flow", agent=adding("inner"))]
    nodes += [EndNode(id="end", name="end", outputs=[text("answer"), text("generated_text"), text("shown")])]
    return line("agents", nodes, None)


def structured():
    """A node of a model with several outputs: not in 25.4.1."""
    start = StartNode(id="start", name="start", inputs=[text("mail")])
    outputs = [text("team"), IntegerProperty(title="urgency", default=1)]
    node = LlmNode(id="node", name="node", llm_config=llm(), prompt_template="Sort {{mail}}", outputs=outputs)
    end = EndNode(id="end", name="end", outputs=outputs)
    return line("structured", [start, node, end], None)


def oci(client):
    config = OciGenAiConfig(id="oci", name="oci", model_id="m", compartment_id="c", client_config=client)
    return Agent(id="of_oci", name="agent", llm_config=config, system_prompt="Help.")


def clients():
    where = {"name": "client", "service_endpoint": "https://oci.invalid"}
    files = {"auth_profile": "DEFAULT", "auth_file_location": "~/.oci/config"}
    return {
        "token": OciClientConfigWithSecurityToken(id="token", **where, **files),
        "key": OciClientConfigWithApiKey(id="key", **where, **files),
        "instance": OciClientConfigWithInstancePrincipal(id="instance", **where),
        "resource": OciClientConfigWithResourcePrincipal(id="resource", **where),
    }


def main() -> None:
    folder = Path(sys.argv[1])
    sensitive = {f"{id}.{field}": "/x" for id in ("sse_tls", "http_tls") for field in ("key_file", "cert_file", "ca_file")}
    written = 0
    plain = [types(), request(), branches(), maps(), nested(), agents(), structured(), llm(), adding("alone")]
    plain += [tool for tool in tools().tools if tool.id in ("server", "client", "remote", "mcp_http")]
    cases = [(component.id, component, {}) for component in plain]
    cases.append(("tools", tools(), sensitive))
    for name, client in clients().items():
        values = {f"{name}.auth_file_location": "~/.oci/config"} if name in ("token", "key") else {}
        cases.append((f"oci_{name}", oci(client), values))
    remote = {"name": "remote", "inputs": [], "outputs": [text("answer")]}
    instance = clients()["instance"]
    cases.append(("oci_agent", OciAgent(id="remote", agent_endpoint_id="e", client_config=instance, **remote), {}))
    serializer = AgentSpecSerializer()
    for name, component, values in cases:
        for version in VERSIONS:
            if name == "structured" and version == Version.v25_4_1:
                continue
            stem = f"{name}.{version.value}"
            (folder / f"{stem}.json").write_text(serializer.to_json(component, agentspec_version=version))
            (folder / f"{stem}.yaml").write_text(serializer.to_yaml(component, agentspec_version=version))
            if values:
                parts = {"$referenced_components": values, "agentspec_version": version.value}
                (folder / f"{stem}.parts.json").write_text(json.dumps(parts))
            written += 2
    for version in VERSIONS:
        flow = maps()
        clerk = tools()
        for name, component, apart, values in [
            ("apart_flow", flow, [flow.nodes[1].subflow, (flow.nodes[0], "the start")], {}),
            ("apart_llm", clerk, [(clerk.llm_config, "the model"), clerk.tools[0]], sensitive),
        ]:
            main_text, parts_text = serializer.to_json(
                component,
                agentspec_version=version,
                disaggregated_components=apart,
                export_disaggregated_components=True,
            )
            parts = json.loads(parts_text)
            parts["$referenced_components"].update(values)
            stem = f"{name}.{version.value}"
            (folder / f"{stem}.json").write_text(main_text)
            (folder / f"{stem}.parts.json").write_text(json.dumps(parts))
            written += 1
    print(written)


main()
