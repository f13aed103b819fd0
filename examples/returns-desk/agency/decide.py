def decide(llm_response, input_data, context):
    upstream = input_data["upstream_yields"]
    if context["from_agent"] == "supervisor":
        # The person says yes or no; what it is about is what this agent gave before.
        asked = upstream["decide"]
        approved = input_data["human_decision"] == "approved"
        why = input_data["human_message"] or "Our supervisor looked at it."
        return {**asked, "verdict": "refund" if approved else "refuse", "why": why}
    order, amount, score = upstream["policy"]["order"], upstream["policy"]["amount"], upstream["fraud"]["score"]
    result = {"order": order, "amount": amount}
    if not upstream["policy"]["in_time"]:
        return {**result, "verdict": "refuse", "why": "The return came too late."}
    if amount >= 100 or score >= 0.3:
        return {**result, "verdict": "ask", "why": f"How suspicious: {score}."}
    return {**result, "verdict": "refund", "why": "The rules allow it."}
