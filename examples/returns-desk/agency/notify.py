def notify(llm_response, input_data, context):
    if context["from_agent"] == "refund":
        return {"message": f"Your refund is on its way: {input_data.get('receipt', 'no receipt')}."}
    return {"message": f"We cannot refund order {input_data['order']}. {input_data['why']}"}
