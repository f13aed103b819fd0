from leafmesh import compose


@compose(ledger=lambda result: {"ticket": result["ticket"]}, nobody=lambda result: 1 / 0)
def intake(llm_response, input_data, context):
    return {"message": input_data["message"]}
