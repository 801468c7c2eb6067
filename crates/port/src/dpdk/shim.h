// SPDX-License-Identifier: Apache-2.0
// The parts of DPDK that the driver uses, as functions: most of DPDK's API is inline and has no symbols to
// link to. `shim_receive` and `shim_transmit` are called once per burst. Functions that return an int return
// 0 or a negative errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Maximum number of packets per burst.
#define SHIM_BURST 64

struct shim_pool;

// A packet of a burst.
struct shim_packet {
    // Start of the mbuf's memory, if the mbuf can be lent: it has one segment and one owner. Null for a
    // packet to transmit: its bytes are copied.
    uint8_t *memory;
    // The mbuf of a received packet, if `memory` is null.
    void *chain;
    // The bytes to copy, for packets to transmit without `memory`.
    const uint8_t *bytes;
    // Offset of the packet's bytes in `memory`.
    uint32_t offset;
    uint32_t len;
};

// Capabilities of a device.
struct shim_device {
    uint16_t max_rx_queues;
    uint16_t max_tx_queues;
    uint16_t socket;
    char driver[64];
};

struct shim_link {
    uint8_t up;
    uint8_t mac[6];
    uint16_t mtu;
    // Speed in Mbit/s; 0: unknown.
    uint32_t speed_mbps;
};

// Numbers of packets that the device has dropped.
struct shim_drops {
    uint64_t missed;
    uint64_t no_buffer;
    uint64_t errors;
    // Packets that the driver accepted and later reported as not sent.
    uint64_t unsent;
};

// Returns the memory size in bytes of each mbuf that `shim_receive` lends.
uint32_t shim_memory_bytes(void);

// Called with DPDK's messages of one or more lines, by any thread. The bytes are not terminated by 0.
typedef void shim_log_function(const char *bytes, size_t len);

// Passes messages to `function` instead of stderr and syslog, which may block. Must be called once, before
// other functions.
int shim_log(shim_log_function *function);
int shim_eal(int argc, char **argv);
const char *shim_error(int error);
// Registers the calling thread with DPDK, which gives it mbuf caches. No effect on later calls.
void shim_thread(void);

// Creates a pool of `count` mbufs. On failure returns null and sets `error`.
struct shim_pool *shim_pool(const char *name, uint32_t count, uint16_t socket, int *error);

// Attaches the device that `arguments` describe, unless it is attached already, and sets `port` to its
// number.
int shim_attach(const char *arguments, uint16_t *port);
int shim_detach(uint16_t port);
// Returns nonzero if the device was detached or removed.
int shim_is_gone(uint16_t port);
int shim_device(uint16_t port, struct shim_device *device);
// Sets up `queues` queues per direction, which receive into `pool` with about `descriptors` receive
// descriptors each, and starts the device.
int shim_start(uint16_t port, uint16_t queues, uint16_t descriptors, uint16_t mtu, struct shim_pool *pool);
int shim_link(uint16_t port, struct shim_link *link);
int shim_drops(uint16_t port, struct shim_drops *drops);

uint16_t shim_receive(uint16_t port, uint16_t queue, struct shim_packet *packets, uint16_t most);
// Copies at most `len` bytes of a chain to `to`, unless that is null, and frees the chain.
void shim_read(void *chain, uint8_t *to, uint32_t len);
// Returns the number of packets accepted, from the first on. The device owns their `memory` from then on.
// Bytes are copied to mbufs of `pool`. When the pool is empty, no further packet is accepted.
uint16_t shim_transmit(uint16_t port, uint16_t queue, struct shim_pool *pool, struct shim_packet *packets,
                       uint16_t count);
// Returns lent memory to its pool.
void shim_free(uint8_t *memory);
