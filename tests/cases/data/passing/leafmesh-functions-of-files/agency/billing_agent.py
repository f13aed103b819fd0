from leafmesh import chain_with_results


def double(result):
    return result["invoice"] * 2


@chain_with_results(double, lambda result, context: len(result))
def billing_agent(llm_response, input_data, context):
    kept = {name: input_data[name] for name in ("invoice", "for")}
    return {**kept, "from": context["from_agent"], "message_seen": "message" in input_data}
