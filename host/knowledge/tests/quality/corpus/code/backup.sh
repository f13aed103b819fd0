#!/bin/sh
# Copies the booking database to the shore every night and keeps thirty of them.
set -eu
pg_dump --format=custom bookings > "/shore/bookings-$(date +%F).dump"
ls -1t /shore/bookings-*.dump | tail -n +31 | xargs -r rm --
