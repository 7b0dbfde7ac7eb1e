"""Runs what one boto3 is checked with: main.py NAME [only those whose name contains this]."""

import sys

import harness
import recorded
import scenario  # noqa: F401: adds its checks

if __name__ == "__main__":
    sys.exit(0 if harness.run(*sys.argv[1:3], summary=recorded.summary) else 1)
