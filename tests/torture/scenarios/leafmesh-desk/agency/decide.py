def decide(llm_response, input_data, context):
    heard = input_data["upstream_yields"]
    return {"verdict": f"{heard['policy']['seen']}, {heard['price']['response']}"}
