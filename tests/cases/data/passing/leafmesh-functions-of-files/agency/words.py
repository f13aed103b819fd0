def is_refund(text):
    return "money" in text
