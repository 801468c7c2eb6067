// SPDX-License-Identifier: Apache-2.0
// The verilated device behind a C interface. `DevicePins` has the layout of `Pins` in src/pins/device.rs.

#include <cstdint>
#include <cstring>
#include <new>

#include "Vdevice.h"
#include "verilated.h"

struct DevicePins {
    // Inputs. Bit n of `rx_valid` and so on stands for channel n.
    uint32_t rx_data[4][16];
    uint32_t cpu_rx_data[16];
    uint64_t rx_keep[4];
    uint64_t cpu_rx_keep;
    uint32_t addresses[6];
    uint8_t rst, miss_output, rx_valid, rx_last, rx_bad, tx_ready;
    uint8_t cpu_rx_valid, cpu_rx_last, cpu_rx_bad, cpu_tx_ready;
    // Outputs, as they are before the clock edge.
    uint8_t tx_valid, tx_last, cpu_tx_valid, cpu_tx_last;
    uint32_t tx_data[4][16];
    uint32_t cpu_tx_data[16];
    uint64_t tx_keep[4];
    uint64_t cpu_tx_keep;
};

namespace {
struct Device {
    VerilatedContext context;
    Vdevice* top = nullptr;
};
constexpr Vdevice* none = nullptr;
static_assert(sizeof(none->rx_data) == sizeof(DevicePins::rx_data), "rx_data");
static_assert(sizeof(none->rx_keep) == sizeof(DevicePins::rx_keep), "rx_keep");
static_assert(sizeof(none->addresses) == sizeof(DevicePins::addresses), "addresses_t");
}  // namespace

extern "C" size_t device_pins_bytes() { return sizeof(DevicePins); }

// Registers without a reset have random values, which depend on the seed. Returns null if memory is short.
extern "C" Device* device_new(uint32_t seed) {
    Device* device = nullptr;
    try {
        device = new Device;
        device->context.randReset(2);
        device->context.randSeed(static_cast<int>(seed & 0x7fffffff));
        device->top = new Vdevice{&device->context};
        return device;
    } catch (const std::bad_alloc&) {
        delete device;
        return nullptr;
    }
}

extern "C" void device_delete(Device* device) {
    delete device->top;
    delete device;
}

extern "C" void device_clock(Device* device, DevicePins* pins) {
    Vdevice& top = *device->top;
    top.rst = pins->rst;
    top.miss_output = pins->miss_output;
    std::memcpy(&top.addresses, pins->addresses, sizeof pins->addresses);
    top.rx_valid = pins->rx_valid;
    if (pins->rx_valid) {
        std::memcpy(&top.rx_data, pins->rx_data, sizeof pins->rx_data);
        std::memcpy(&top.rx_keep, pins->rx_keep, sizeof pins->rx_keep);
        top.rx_last = pins->rx_last;
        top.rx_bad = pins->rx_bad;
    }
    top.tx_ready = pins->tx_ready;
    top.cpu_rx_valid = pins->cpu_rx_valid;
    if (pins->cpu_rx_valid) {
        std::memcpy(&top.cpu_rx_data, pins->cpu_rx_data, sizeof pins->cpu_rx_data);
        top.cpu_rx_keep = pins->cpu_rx_keep;
        top.cpu_rx_last = pins->cpu_rx_last;
        top.cpu_rx_bad = pins->cpu_rx_bad;
    }
    top.cpu_tx_ready = pins->cpu_tx_ready;
    top.clk = 0;
    top.eval();
    pins->tx_valid = top.tx_valid;
    if (top.tx_valid) {
        std::memcpy(pins->tx_data, &top.tx_data, sizeof pins->tx_data);
        std::memcpy(pins->tx_keep, &top.tx_keep, sizeof pins->tx_keep);
        pins->tx_last = top.tx_last;
    }
    pins->cpu_tx_valid = top.cpu_tx_valid;
    if (top.cpu_tx_valid) {
        std::memcpy(pins->cpu_tx_data, &top.cpu_tx_data, sizeof pins->cpu_tx_data);
        pins->cpu_tx_keep = top.cpu_tx_keep;
        pins->cpu_tx_last = top.cpu_tx_last;
    }
    top.clk = 1;
    top.eval();
}
