from leafmesh import chain, compose, conditional_chain, pre_compose

from agency.words import is_refund


def clean(input_data):
    return input_data["message"].strip().lower()


async def customer(ctx):
    return {"has_session": ctx["session_id"] != ""}


def priced(result, context):
    return {**result, "amount": 12.5}


async def numbered(result):
    return {**result, "invoice_id": f"INV-{len(result['message'])}"}


@conditional_chain(lambda result, ctx: result["kind"] == "refund", numbered)
@chain(priced)
@compose(
    billing_agent=lambda result, ctx: {"invoice": result["invoice_id"], "for": ctx["to_agent"]},
    # Would fail for what `ask` brings here; nobody minds, as `report` is not called.
    report=lambda result, ctx: {"ticket": result["ticket"]},
)
@pre_compose(context_processor=customer, input_processor=clean)
async def intake_agent(llm_response, input_data, context):
    prepared = context["prepared_data"]
    assert llm_response is None and prepared["business_context"] == {"has_session": True}
    text = prepared["clean_user_input"]
    return {"kind": "refund" if is_refund(text) else "other", "message": text}
