def notify(llm_response, input_data, context):
    match context["from_agent"]:
        case "refund":
            return {"message": f"Your refund is on its way: {input_data.get('receipt', 'no receipt')}."}
        case "supervisor":
            return {"message": "We looked at your return, and cannot refund it."}
        case _:
            return {"message": f"We cannot refund order {input_data['order']}. {input_data['why']}"}
