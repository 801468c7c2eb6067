// SPDX-License-Identifier: Apache-2.0
// What the driver needs of DPDK, most of which is inline functions and so has no symbols. `shim_receive` and
// `shim_transmit` are called once a burst. Functions that return an int return 0 or a negative errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Packets in one burst at most.
#define SHIM_BURST 64

struct shim_pool;

// A packet in a burst.
struct shim_packet {
    // Where the memory begins that its mbuf's data are in, if that may be lent as it is: one segment, owned by nobody
    // else. Transmitted without: the bytes are copied.
    uint8_t *memory;
    // Received: the mbuf, if `memory` is null.
    void *chain;
    // The bytes, to be copied. Transmitted packets without `memory` only.
    const uint8_t *bytes;
    // Of the bytes in `memory`.
    uint32_t offset;
    uint32_t len;
};

// What a device is and can.
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
    // 0: unknown.
    uint32_t speed_mbps;
};

// Packets that the device has dropped.
struct shim_drops {
    uint64_t missed;
    uint64_t no_buffer;
    uint64_t errors;
    // Sent, as far as the driver told, and then not.
    uint64_t unsent;
};

// Bytes of memory of each mbuf that `shim_receive` lends.
uint32_t shim_memory_bytes(void);

// What is given DPDK's messages, of one line or more, from whatever thread. The bytes do not end in 0.
typedef void shim_log_function(const char *bytes, size_t len);

// Gives messages to `function` instead of writing them to stderr and syslog, which may block. To be called once, first.
int shim_log(shim_log_function *function);
int shim_eal(int argc, char **argv);
const char *shim_error(int error);
// Gives the calling thread the caches of a worker, once.
void shim_thread(void);

// A pool of `count` mbufs. Null: see `error`.
struct shim_pool *shim_pool(const char *name, uint32_t count, uint16_t socket, int *error);

// Attaches the device that `arguments` describe, unless it is attached already, and tells its port.
int shim_attach(const char *arguments, uint16_t *port);
int shim_detach(uint16_t port);
// Not 0: the device has been taken away, by whoever detached it or by pulling it out.
int shim_is_gone(uint16_t port);
int shim_device(uint16_t port, struct shim_device *device);
// Sets up so many queues of each kind that receive into `pool`, with about so many descriptors to receive, and starts the
// device.
int shim_start(uint16_t port, uint16_t queues, uint16_t descriptors, uint16_t mtu, struct shim_pool *pool);
int shim_link(uint16_t port, struct shim_link *link);
int shim_drops(uint16_t port, struct shim_drops *drops);

uint16_t shim_receive(uint16_t port, uint16_t queue, struct shim_packet *packets, uint16_t most);
// Copies a chain's bytes, at most `len`, and frees it; frees it only, if `to` is null.
void shim_read(void *chain, uint8_t *to, uint32_t len);
// Returns how many packets were taken, from the first on; their `memory` is the device's from then on. Copies are made
// in mbufs of `pool`; where that is used up, no further packet is taken.
uint16_t shim_transmit(uint16_t port, uint16_t queue, struct shim_pool *pool, struct shim_packet *packets,
                       uint16_t count);
// Ends the loan of a memory.
void shim_free(uint8_t *memory);
