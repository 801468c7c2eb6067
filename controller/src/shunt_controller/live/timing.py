# SPDX-License-Identifier: Apache-2.0
"""Times and limits of discovery. All times are in seconds of a clock that never goes back."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Settings of discovery."""

    period_s: float = 5.0
    """Time between two LLDP frames of a port."""
    first_s: tuple[float, ...] = (0.0, 0.3, 1.0)
    """Times of the first LLDP frames after a port is up."""
    missed: int = 3
    """Number of periods without an LLDP frame after which a link is removed."""
    edge_after_s: float = 1.5
    """Time for which a port must be up without a link until hosts are learned there."""
    hold_s: float = 1.0
    """Time for which a link that has failed is not used again. It doubles with each further failure."""
    hold_max_s: float = 30.0
    calm_s: float = 60.0
    """Time without a failure after which the earlier failures of a link are forgotten."""
    late_s: float = 30.0
    """Time after the connection of a switch in which a port with hosts may turn out to lead to this switch."""
    absent_s: float = 15.0
    """Time for which a switch remains in the topology after its connection has ended."""
    host_hold_s: float = 10.0
    """Time for which hosts are kept after their port is down."""
    moves_max: int = 5
    """Maximum number of moves of a host in `moves_s`. Further moves are ignored."""
    moves_s: float = 10.0
    hosts_per_port: int = 64
    """Maximum number of MAC addresses that are learned at a port."""
    addresses_per_host: int = 16

    @property
    def lifetime_s(self) -> float:
        """Time for which an LLDP frame confirms a link."""
        return self.missed * self.period_s
