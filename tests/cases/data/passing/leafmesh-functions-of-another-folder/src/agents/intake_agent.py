def intake(llm_response, input_data, context):
    return {"said": input_data["message"].upper()}
