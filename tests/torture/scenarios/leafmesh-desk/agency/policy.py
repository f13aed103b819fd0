def policy(llm_response, input_data, context):
    return {"allowed": True, "seen": str(input_data.get("response", ""))}
