"""`python -m memd.testing`: runs the model server alone, to try memd or to measure it."""

from __future__ import annotations

import argparse
import signal
import sys

from memd.testing.model_server import ModelServer


def main() -> None:
    """Serve until SIGINT or SIGTERM. The first line of the output is the address."""
    parser = argparse.ArgumentParser(prog="python -m memd.testing", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0: any free port")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    stop = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    with ModelServer(port=options.port, delay=options.delay) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        signal.sigwait(stop)
        sys.stdout.write(f"{server.calls} calls, {server.max_concurrent} at once\n")


if __name__ == "__main__":
    main()
