def greeter(llm_response, input_data, context):
    return {"greeting": f"Hello, {input_data.get('message', 'you')}!"}
