// SPDX-License-Identifier: Apache-2.0
// The parts of DPDK that the driver uses, as functions: most of DPDK's API is inline and has no symbols to
// link to. `shim_receive` and `shim_transmit` are called once per burst. Functions that return an int return
// 0 or a negative errno.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Maximum number of packets per burst.
#define SHIM_BURST 64
// Size of an mbuf's private area in bytes.
#define SHIM_PRIVATE_BYTES 64

struct shim_pool;

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
    // Speed in Mbit/s, or 0 if it is unknown.
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

// Called with DPDK's messages of one or more lines, by any thread. The bytes are not terminated by 0.
typedef void shim_log_function(const char *bytes, size_t len);

// Passes messages to `function` instead of stderr and syslog, which may block. Must be called once, before
// other functions.
int shim_log(shim_log_function *function);
int shim_eal(int argc, char **argv);
const char *shim_error(int error);
// Registers the calling thread with DPDK, which gives it mbuf caches. No effect on later calls.
void shim_thread(void);

// Called with each mbuf of a new pool and the size of the mbuf's memory in bytes.
typedef void shim_prepare_function(void *mbuf, uint32_t memory_bytes);

// Creates a pool of `count` mbufs, each with a private area of SHIM_PRIVATE_BYTES. On failure returns null
// and sets `error`.
struct shim_pool *shim_pool(const char *name, uint32_t count, uint16_t socket, shim_prepare_function *prepare,
                            int *error);
// Returns the approximate number of free mbufs of a pool: mbufs in the caches of other threads count as used.
// Sets `total` to the number of all mbufs.
uint32_t shim_level(void *pool, uint32_t *total);

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

// Receives up to `most` packets, at most SHIM_BURST, as mbufs. Sets a bit in `odd` for each mbuf that cannot
// become a frame: it has several segments, is shared, belongs to another pool, lacks tailroom, or is shorter
// than an Ethernet header. Adds the lengths of the other packets to `bytes`.
uint16_t shim_receive(uint16_t port, uint16_t queue, struct shim_pool *pool, void **mbufs, uint16_t most,
                      uint64_t *odd, uint64_t *bytes);
// Returns the length of a packet in bytes.
uint32_t shim_len(const void *mbuf);
// Copies at most `len` bytes of a packet to `to`, unless that is null, and frees its mbufs.
void shim_read(void *mbuf, uint8_t *to, uint32_t len);
// Passes frames, from the first on and at most SHIM_BURST, to the device. Returns how many it accepted.
// Frames that are not mbufs are copied to mbufs of `pool`, and their bits in `copied` are set. The device
// owns all other accepted frames from then on. When the pool is empty, no further frame is accepted.
uint16_t shim_transmit(uint16_t port, uint16_t queue, struct shim_pool *pool, void *const *frames, uint16_t count,
                       uint64_t *copied);
// Sends a copy of these bytes. Returns 1 if it was accepted, else 0.
uint16_t shim_transmit_bytes(uint16_t port, uint16_t queue, struct shim_pool *pool, const uint8_t *bytes,
                             uint32_t len);
// Returns an mbuf to its pool.
void shim_free(void *mbuf);
