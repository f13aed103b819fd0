def decide(llm_response, input_data, context):
    upstream = input_data["upstream_yields"]
    order, amount, score = upstream["policy"]["order"], upstream["policy"]["amount"], upstream["fraud"]["score"]
    result = {"order": order, "amount": amount}
    if not upstream["policy"]["in_time"]:
        return {**result, "verdict": "refuse", "why": "The return came too late."}
    if amount >= 100 or score >= 0.3:
        return {**result, "verdict": "ask", "why": f"How suspicious: {score}."}
    return {**result, "verdict": "refund", "why": "The rules allow it."}
