def report(llm_response, input_data, context):
    return {}
