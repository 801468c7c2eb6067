// SPDX-License-Identifier: Apache-2.0
// Unusual mbufs for the tests of the driver. Other builds do not link these functions.
#pragma once

#include <stdint.h>

enum odd_kind {
    // One segment with one reference, at the usual offset.
    ODD_PLAIN,
    // The mbuf has a second reference, which the caller gets.
    ODD_SHARED,
    // A second mbuf refers to the packet's memory. The caller gets the first mbuf.
    ODD_INDIRECT,
    // The packet lies outside the mbuf.
    ODD_EXTERNAL,
    // The packet lies in two mbufs.
    ODD_CHAIN,
    // The packet begins with the first byte of the mbuf's memory.
    ODD_FIRST,
    // The packet ends with the last byte of the memory.
    ODD_LAST,
    // Like ODD_LAST, but with the tailroom that frames need.
    ODD_LAST_WITH_TAIL,
};

// Sends a packet in an mbuf of `pool` through the port's first queue. A port of net_ring receives the same
// mbuf. Sets `held` to an mbuf that the caller must free, or to null. Returns 1 on success, else 0.
int odd_send(uint16_t port, void *pool, enum odd_kind kind, const uint8_t *bytes, uint16_t len, void **held);
