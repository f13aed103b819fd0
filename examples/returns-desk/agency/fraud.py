from leafmesh import chain

WORDS = ("never arrived", "again", "cash")


def rounded(result):
    return {"score": round(result["score"], 2)}


@chain(rounded)
def fraud(llm_response, input_data, context):
    hits = sum(word in input_data["reason"].lower() for word in WORDS)
    return {"score": min(1.0, hits / 3 + input_data["amount"] / 10_000)}
