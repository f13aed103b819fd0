from leafmesh import pre_compose


@pre_compose(input_processor=lambda data, context: data["q"].strip())
def clerk(llm_response, input_data, context):
    return {
        "answer": llm_response["found"],
        "count": len(context["memory_posts"]),
        "cleaned": context["prepared_data"]["clean_user_input"],
    }
