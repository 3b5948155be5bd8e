"""A stand-in for redis-cli where none is installed: one command of the line, sent by redis-py to the real server."""

from __future__ import annotations

import argparse
import os
import sys

import redis


def main() -> None:
    """Understands the options that the documents use, and prints replies as redis-cli does into a pipe."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("-s", dest="socket")
    options.add_argument("-p", dest="port", type=int, default=6379)
    options.add_argument("--user")
    options.add_argument("command", nargs=argparse.REMAINDER)
    chosen = options.parse_args()
    account = {"username": chosen.user, "password": os.environ.get("REDISCLI_AUTH")}
    with redis.Redis(unix_socket_path=chosen.socket, port=chosen.port, **account) as client:
        try:
            sys.stdout.write(f"{client.execute_command(*chosen.command)}\n")
        except redis.RedisError as error:
            sys.exit(f"{error}")


if __name__ == "__main__":
    main()
