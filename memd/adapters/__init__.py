"""Adapters: memd behind the interfaces of agent frameworks. Each is imported only by the app that uses it."""
