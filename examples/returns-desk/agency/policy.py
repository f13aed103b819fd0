IN_TIME = 30


def policy(llm_response, input_data, context):
    return {"in_time": input_data["days"] <= IN_TIME, "order": input_data["order"], "amount": input_data["amount"]}
