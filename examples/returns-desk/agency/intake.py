import re

from leafmesh import compose, pre_compose

_NUMBERS = {
    "amount": r"(?:EUR|€)\s*(\d+(?:\.\d+)?)",
    "days": r"(\d+)\s+days?",
}


def tidy(input_data):
    return " ".join(input_data["message"].split())


@compose(fraud=lambda result, context: {"amount": result["amount"], "reason": result["reason"]})
@pre_compose(input_processor=tidy)
def intake(llm_response, input_data, context):
    text = context["prepared_data"]["clean_user_input"]
    order = re.search(r"[A-Z]-\d+", text)
    found = {name: re.search(pattern, text) for name, pattern in _NUMBERS.items()}
    return {
        "order": order[0] if order else "unknown",
        "reason": text,
        **{name: float(match[1]) if match else 0 for name, match in found.items()},
    }
