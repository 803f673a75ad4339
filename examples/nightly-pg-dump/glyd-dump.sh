#!/bin/sh
# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: Apache-2.0
# Nightly dump of a PostgreSQL database into a store: glyd-dump.sh STORE DATABASE
#
# From cron:     15 3 * * *  /usr/local/bin/glyd-dump.sh /srv/archive shop
# From systemd:  glyd-dump@shop.timer beside this file
#
# A dump that fails leaves no version: glyd-store runs pg_dump itself and looks at how it ended.
# Plain text, not compressed: versions are stored against each other.
set -eu
store=$1
database=$2
: "${GLYD_STORE:=glyd-store}"

"$GLYD_STORE" "$store" put --command "pg_dump --no-password '$database'" --name "$database.sql" --tag kind=nightly
"$GLYD_STORE" "$store" prune --keep-daily 14 --keep-weekly 8 --keep-monthly 24 --quiet
"$GLYD_STORE" "$store" compact --grace 1d --json >/dev/null
"$GLYD_STORE" "$store" check --read-data=5% --quiet
