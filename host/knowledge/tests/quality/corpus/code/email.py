from smtplib import SMTP_SSL


def send_confirmation(address, booking):
    """Mails the traveller that the reservation has been made."""
    with SMTP_SSL("mail.quist.example") as server:
        server.sendmail("booking@quist.example", address, render_confirmation(booking))
