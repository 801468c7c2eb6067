// SPDX-License-Identifier: Apache-2.0
// See shim.h.

// Needed for fopencookie.
#define _GNU_SOURCE

#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

// Space for the longest ordinary packet, and tailroom for wide loads near its end (frame::TAILROOM_BYTES).
#define DATA_BYTES (2048 + 64)
#define MEMORY_BYTES (RTE_PKTMBUF_HEADROOM + DATA_BYTES)
#define TAIL_BYTES 64
#define MIN_BYTES RTE_ETHER_HDR_LEN
#define CACHE_MBUFS 256
// Kept small, because low-latency packets cannot overtake packets that the device has accepted.
#define TX_DESCRIPTORS 256
// Limits of the wait for the interrupt thread: maximum number of waits, and duration of each wait.
#define INTERRUPT_WAITS 1000
#define INTERRUPT_WAIT_US 100

// A frame is an mbuf, so both must have the same layout. The frame's offsets are given by build.rs.
_Static_assert(offsetof(struct rte_mbuf, buf_addr) == FRAME_MEMORY, "frame: memory");
_Static_assert(offsetof(struct rte_mbuf, data_off) == FRAME_OFFSET, "frame: offset");
_Static_assert(offsetof(struct rte_mbuf, pkt_len) == FRAME_LEN, "frame: len");
_Static_assert(offsetof(struct rte_mbuf, pool) == FRAME_POOL, "frame: pool");
_Static_assert(sizeof(struct rte_mbuf) == FRAME_PRIVATE, "frame: private area");
_Static_assert(RTE_PKTMBUF_HEADROOM == FRAME_HEADROOM, "frame: headroom");

static shim_log_function *log_function;

static ssize_t write_log(void *cookie, const char *bytes, size_t len)
{
    (void)cookie;
    log_function(bytes, len);
    return (ssize_t)len;
}

int shim_log(shim_log_function *function)
{
    FILE *stream;

    log_function = function;
    stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_log});
    return stream ? rte_openlog_stream(stream) : -ENOMEM;
}

int shim_eal(int argc, char **argv)
{
    return rte_eal_init(argc, argv) < 0 ? -(rte_errno ? rte_errno : EINVAL) : 0;
}

const char *shim_error(int error)
{
    return rte_strerror(error < 0 ? -error : error);
}

void shim_thread(void)
{
    // If the registration fails, mempools still work, but without caches.
    if (rte_lcore_id() == LCORE_ID_ANY)
        (void)rte_thread_register();
}

static void prepare_mbuf(struct rte_mempool *pool, void *function, void *mbuf, unsigned int at)
{
    (void)pool;
    (void)at;
    ((shim_prepare_function *)function)(mbuf, MEMORY_BYTES);
}

struct shim_pool *shim_pool(const char *name, uint32_t count, uint16_t socket, shim_prepare_function *prepare,
                            int *error)
{
    // DPDK refuses a cache larger than two thirds of the pool.
    unsigned int cache = count / 2 < CACHE_MBUFS ? 0 : CACHE_MBUFS;
    struct rte_mempool *pool =
        rte_pktmbuf_pool_create(name, count, cache, SHIM_PRIVATE_BYTES, MEMORY_BYTES, socket);

    *error = pool ? 0 : -rte_errno;
    if (pool)
        rte_mempool_obj_iter(pool, prepare_mbuf, (void *)prepare);
    return (struct shim_pool *)pool;
}

uint32_t shim_level(void *mempool, uint32_t *total)
{
    struct rte_mempool *pool = mempool;
    const struct rte_mempool_cache *cache = rte_mempool_default_cache(pool, rte_lcore_id());

    *total = pool->size;
    return rte_mempool_get_ops(pool->ops_index)->get_count(pool) + (cache ? cache->len : 0);
}

static int find(const char *arguments, uint16_t *port)
{
    struct rte_dev_iterator iterator;
    uint16_t found;

    RTE_ETH_FOREACH_MATCHING_DEV(found, arguments, &iterator)
    {
        rte_eth_iterator_cleanup(&iterator);
        *port = found;
        return 0;
    }
    return -ENODEV;
}

int shim_attach(const char *arguments, uint16_t *port)
{
    int result;

    // A device that is attached already is not probed again, because DPDK would log that as a failure.
    if (find(arguments, port) == 0)
        return 0;
    result = rte_dev_probe(arguments);
    return result < 0 ? result : find(arguments, port);
}

static void set_flag(void *flag)
{
    __atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
}

// Waits until DPDK's interrupt thread has finished the events that it has begun to handle. Drivers such as
// memif handle the disconnection of a peer in that thread. Closing the device during this time would free
// memory that the driver still uses.
static void await_interrupts(void)
{
    // An alarm runs in the interrupt thread. Two alarms are awaited, because the first may run before other
    // events of the same batch.
    for (int round = 0; round < 2; round++) {
        int flag = 0;

        if (rte_eal_alarm_set(1, set_flag, &flag) < 0)
            return;
        for (int wait = 0; wait < INTERRUPT_WAITS && !__atomic_load_n(&flag, __ATOMIC_ACQUIRE); wait++)
            rte_delay_us_sleep(INTERRUPT_WAIT_US);
        (void)rte_eal_alarm_cancel(set_flag, &flag);
    }
}

int shim_detach(uint16_t port)
{
    struct rte_eth_dev_info info;
    int result = rte_eth_dev_info_get(port, &info);

    await_interrupts();
    (void)rte_eth_dev_stop(port);
    (void)rte_eth_dev_close(port);
    return result < 0 ? result : rte_dev_remove(info.device);
}

int shim_is_gone(uint16_t port)
{
    return !rte_eth_dev_is_valid_port(port) || rte_eth_dev_is_removed(port);
}

int shim_device(uint16_t port, struct shim_device *device)
{
    struct rte_eth_dev_info info;
    int result = rte_eth_dev_info_get(port, &info);
    int socket = rte_eth_dev_socket_id(port);

    if (result < 0)
        return result;
    device->max_rx_queues = info.max_rx_queues;
    device->max_tx_queues = info.max_tx_queues;
    device->socket = socket < 0 ? 0 : socket;
    strncpy(device->driver, info.driver_name ? info.driver_name : "", sizeof(device->driver) - 1);
    device->driver[sizeof(device->driver) - 1] = 0;
    return 0;
}

// Returns the maximum MTU of a device: its longest packet without header and CRC.
static uint16_t most_mtu(const struct rte_eth_dev_info *info)
{
    uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

    // The same computation as in `rte_eth_dev_configure`.
    if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
        overhead = info->max_rx_pktlen - info->max_mtu;
    if (info->max_rx_pktlen <= overhead || info->max_rx_pktlen - overhead > info->max_mtu)
        return info->max_mtu;
    return info->max_rx_pktlen - overhead;
}

int shim_start(uint16_t port, uint16_t queues, uint16_t descriptors, uint16_t mtu, struct shim_pool *pool)
{
    struct rte_eth_dev_info info;
    struct rte_eth_conf conf = {0};
    uint16_t rx = descriptors, tx = TX_DESCRIPTORS, queue;
    int result = rte_eth_dev_info_get(port, &info);
    int socket = rte_eth_dev_socket_id(port);

    if (result < 0)
        return result;
    // A packet longer than an mbuf is received in several mbufs, if the device supports it.
    conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
    conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    conf.rxmode.mtu = RTE_MIN(mtu, most_mtu(&info));
    if (queues > 1 && info.flow_type_rss_offloads) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf =
            info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
    }
    if ((result = rte_eth_dev_configure(port, queues, queues, &conf)) < 0)
        return result;
    if ((result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx)) < 0)
        return result;
    for (queue = 0; queue < queues; queue++) {
        result = rte_eth_rx_queue_setup(port, queue, rx, socket < 0 ? 0 : socket, NULL, (struct rte_mempool *)pool);
        if (result < 0)
            return result;
        if ((result = rte_eth_tx_queue_setup(port, queue, tx, socket < 0 ? 0 : socket, NULL)) < 0)
            return result;
    }
    if ((result = rte_eth_dev_start(port)) < 0)
        return result;
    // Some virtual devices receive all packets anyway and do not support this mode.
    result = rte_eth_promiscuous_enable(port);
    return result == -ENOTSUP ? 0 : result;
}

int shim_link(uint16_t port, struct shim_link *link)
{
    struct rte_eth_link state;
    struct rte_ether_addr mac;
    int result = rte_eth_link_get_nowait(port, &state);

    memset(link, 0, sizeof(*link));
    if (result < 0)
        return result;
    link->up = state.link_status == RTE_ETH_LINK_UP;
    link->speed_mbps = state.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : state.link_speed;
    if ((result = rte_eth_macaddr_get(port, &mac)) < 0)
        return result;
    memcpy(link->mac, mac.addr_bytes, sizeof(link->mac));
    return rte_eth_dev_get_mtu(port, &link->mtu);
}

int shim_drops(uint16_t port, struct shim_drops *drops)
{
    struct rte_eth_stats stats;
    int result = rte_eth_stats_get(port, &stats);

    if (result < 0)
        return result;
    drops->missed = stats.imissed;
    drops->no_buffer = stats.rx_nombuf;
    drops->errors = stats.ierrors;
    drops->unsent = stats.oerrors;
    return 0;
}

// Value of the mbuf fields `data_off` to `nb_segs` in most received packets.
#define USUAL_WORD (RTE_PKTMBUF_HEADROOM | UINT64_C(1) << 16 | UINT64_C(1) << 32)
#define USUAL_MASK UINT64_C(0x0000ffffffffffff)
_Static_assert(offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2, "mbuf: refcnt");
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4, "mbuf: nb_segs");

// Returns whether the packet begins at the usual offset, in one segment with one reference.
static inline int is_usual(const struct rte_mbuf *mbuf)
{
    uint64_t word;

    memcpy(&word, mbuf->rearm_data, sizeof(word));
    return (rte_le_to_cpu_64(word) & USUAL_MASK) == USUAL_WORD;
}

static inline int is_frame(const struct rte_mbuf *mbuf, const struct rte_mempool *pool)
{
    if (unlikely(mbuf->pool != pool || !RTE_MBUF_DIRECT(mbuf) || mbuf->buf_len != MEMORY_BYTES))
        return 0;
    if (likely(is_usual(mbuf)))
        return mbuf->data_len >= MIN_BYTES && mbuf->data_len <= DATA_BYTES - TAIL_BYTES;
    return mbuf->nb_segs == 1 && rte_mbuf_refcnt_read(mbuf) == 1 && mbuf->data_len >= MIN_BYTES &&
           mbuf->data_off + mbuf->data_len + TAIL_BYTES <= MEMORY_BYTES;
}

uint16_t shim_receive(uint16_t port, uint16_t queue, struct shim_pool *pool, void **frames, uint16_t most,
                      uint64_t *odd, uint64_t *bytes)
{
    struct rte_mbuf **mbufs = (struct rte_mbuf **)frames;
    uint16_t count = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(most, SHIM_BURST));
    uint64_t others = 0, sum = 0;

    for (uint16_t i = 0; i < count; i++) {
        if (likely(is_frame(mbufs[i], (struct rte_mempool *)pool)))
            sum += mbufs[i]->pkt_len;
        else
            others |= UINT64_C(1) << i;
    }
    *odd = others;
    *bytes = sum;
    return count;
}

uint32_t shim_len(const void *mbuf)
{
    return ((const struct rte_mbuf *)mbuf)->pkt_len;
}

void shim_read(void *mbuf, uint8_t *to, uint32_t len)
{
    for (const struct rte_mbuf *part = mbuf; to && part; part = part->next) {
        uint32_t bytes = RTE_MIN(len, (uint32_t)part->data_len);

        memcpy(to, rte_pktmbuf_mtod(part, const uint8_t *), bytes);
        to += bytes;
        len -= bytes;
    }
    rte_pktmbuf_free(mbuf);
}

// Returns a copy in one mbuf, or in a chain of mbufs if it is long.
static struct rte_mbuf *copy(struct rte_mempool *pool, const uint8_t *bytes, uint32_t len)
{
    struct rte_mbuf *first = NULL, *last = NULL;

    while (len > 0 || !first) {
        uint16_t part = RTE_MIN(len, (uint32_t)DATA_BYTES);
        struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

        if (!mbuf) {
            rte_pktmbuf_free(first);
            return NULL;
        }
        memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), bytes, part);
        mbuf->data_len = part;
        bytes += part;
        len -= part;
        if (first) {
            last->next = mbuf;
            first->nb_segs++;
        } else {
            first = mbuf;
        }
        first->pkt_len += part;
        last = mbuf;
    }
    return first;
}

uint16_t shim_transmit(uint16_t port, uint16_t queue, struct shim_pool *pool, void *const *frames, uint16_t count,
                       uint64_t *copied)
{
    struct rte_mbuf *mbufs[SHIM_BURST];
    uint64_t copies = 0;
    uint16_t ready = 0, sent;

    for (count = RTE_MIN(count, SHIM_BURST); ready < count; ready++) {
        // A frame that is not an mbuf has the same layout, but its pool is null.
        struct rte_mbuf *mbuf = frames[ready];

        if (likely(mbuf->pool != NULL)) {
            mbuf->data_len = mbuf->pkt_len;
            mbuf->ol_flags = 0;
        } else {
            mbuf = copy((struct rte_mempool *)pool, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->pkt_len);
            if (!mbuf)
                break;
            copies |= UINT64_C(1) << ready;
        }
        mbufs[ready] = mbuf;
    }
    sent = rte_eth_tx_burst(port, queue, mbufs, ready);
    for (uint16_t i = sent; copies && i < ready; i++)
        if (copies & (UINT64_C(1) << i))
            rte_pktmbuf_free(mbufs[i]);
    *copied = copies;
    return sent;
}

uint16_t shim_transmit_bytes(uint16_t port, uint16_t queue, struct shim_pool *pool, const uint8_t *bytes,
                             uint32_t len)
{
    struct rte_mbuf *mbuf = copy((struct rte_mempool *)pool, bytes, len);

    if (!mbuf)
        return 0;
    if (rte_eth_tx_burst(port, queue, &mbuf, 1) == 1)
        return 1;
    rte_pktmbuf_free(mbuf);
    return 0;
}

void shim_free(void *mbuf)
{
    rte_pktmbuf_free_seg(mbuf);
}
