from pydantic import BaseModel, EmailStr


class SupportReply(BaseModel):
    to: EmailStr
