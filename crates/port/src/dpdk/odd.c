// SPDX-License-Identifier: Apache-2.0
// See odd.h.

#include "odd.h"

#include <string.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#define TAIL_BYTES 64

// Memory for a packet outside any mbuf, with DPDK's reference count of it.
struct external {
    struct rte_mbuf_ext_shared_info info;
    uint8_t bytes[2048];
};

static void free_external(void *bytes, void *external)
{
    (void)bytes;
    rte_free(external);
}

static int attach_external(struct rte_mbuf *mbuf)
{
    struct external *external = rte_zmalloc(NULL, sizeof(*external), 0);

    if (!external)
        return 0;
    external->info.free_cb = free_external;
    external->info.fcb_opaque = external;
    rte_mbuf_ext_refcnt_set(&external->info, 1);
    rte_pktmbuf_attach_extbuf(mbuf, external->bytes, RTE_BAD_IOVA, sizeof(external->bytes), &external->info);
    return 1;
}

// Copies the packet into the mbuf, to `offset` in the mbuf's memory. Returns 0 if the packet does not fit.
static int fill(struct rte_mbuf *mbuf, uint16_t offset, const uint8_t *bytes, uint16_t len)
{
    if (offset + len > mbuf->buf_len)
        return 0;
    mbuf->data_off = offset;
    mbuf->data_len = len;
    mbuf->pkt_len = len;
    memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), bytes, len);
    return 1;
}

// Changes a filled mbuf to the requested kind. Returns the mbuf to send, or null.
static struct rte_mbuf *change(struct rte_mbuf *mbuf, enum odd_kind kind, const uint8_t *bytes, uint16_t len,
                               void **held)
{
    struct rte_mbuf *other;

    switch (kind) {
    case ODD_SHARED:
        rte_mbuf_refcnt_update(mbuf, 1);
        *held = mbuf;
        return mbuf;
    case ODD_INDIRECT:
        other = rte_pktmbuf_clone(mbuf, mbuf->pool);
        *held = mbuf;
        return other;
    case ODD_EXTERNAL:
        return attach_external(mbuf) && fill(mbuf, RTE_PKTMBUF_HEADROOM, bytes, len) ? mbuf : NULL;
    case ODD_CHAIN:
        other = rte_pktmbuf_alloc(mbuf->pool);
        if (!other || !fill(other, 0, bytes + len / 2, len - len / 2))
            return NULL;
        mbuf->data_len = mbuf->pkt_len = len / 2;
        return rte_pktmbuf_chain(mbuf, other) == 0 ? mbuf : NULL;
    case ODD_FIRST:
        return fill(mbuf, 0, bytes, len) ? mbuf : NULL;
    case ODD_LAST:
        return fill(mbuf, mbuf->buf_len - len, bytes, len) ? mbuf : NULL;
    case ODD_LAST_WITH_TAIL:
        return fill(mbuf, mbuf->buf_len - TAIL_BYTES - len, bytes, len) ? mbuf : NULL;
    default:
        return mbuf;
    }
}

int odd_send(uint16_t port, void *pool, enum odd_kind kind, const uint8_t *bytes, uint16_t len, void **held)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

    *held = NULL;
    if (!mbuf || !fill(mbuf, RTE_PKTMBUF_HEADROOM, bytes, len))
        return 0;
    mbuf = change(mbuf, kind, bytes, len, held);
    if (!mbuf || rte_eth_tx_burst(port, 0, &mbuf, 1) == 1)
        return mbuf != NULL;
    rte_pktmbuf_free(mbuf);
    return 0;
}
