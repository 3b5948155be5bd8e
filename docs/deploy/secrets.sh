#!/bin/sh
# Writes new passwords into two files of the current folder, which only their owner can read:
#   memd.env   what scheduler, workers and http need; add ANTHROPIC_API_KEY
#   setup.env  what makes the tables, the roles and the accounts
# It never replaces a file: a new password must also be set on the servers.
set -euC
umask 077
password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
inbox=$(password) writer=$(password) owner=$(password)
cat > memd.env <<END
MEMD_REDIS_URL=redis://memd-daemon:$inbox@server:6379/0
PGPASSWORD=$writer
ANTHROPIC_API_KEY=
END
cat > setup.env <<END
ACL_PASSWORD_MEMD_DAEMON=$inbox
STORE_PASSWORD_MEMD_WRITER=$writer
POSTGRES_PASSWORD=$owner
PGPASSWORD=$owner
END
