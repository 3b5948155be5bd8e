"""Adapters: memd behind the interfaces of agent frameworks. An app imports only the one that it uses."""
