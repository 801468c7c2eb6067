# SPDX-License-Identifier: Apache-2.0
"""Two or more controllers that share a network: one of them is the master, and etcd stores its plan."""
