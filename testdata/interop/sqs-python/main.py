"""Runs what one botocore is checked with: main.py NAME [only those whose name contains this]."""

import sys

import harness
import recorded  # noqa: F401: adds its checks
import scenario  # noqa: F401: adds its checks

if __name__ == "__main__":
    sys.exit(0 if harness.run(*sys.argv[1:3]) else 1)
