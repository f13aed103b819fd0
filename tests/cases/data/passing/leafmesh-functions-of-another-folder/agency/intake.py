def intake(llm_response, input_data, context):
    return {"said": "of the folder that is not meant"}
