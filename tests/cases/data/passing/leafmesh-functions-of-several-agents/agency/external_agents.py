def scout(llm_response, input_data, context):
    return {"seen": input_data["message"] + "!"}


def scribe(llm_response, input_data, context):
    return {"written": "scribe: " + input_data["seen"]}
