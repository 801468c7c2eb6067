// SPDX-License-Identifier: Apache-2.0
// The verilated data plane behind a C interface. `DatapathPins` has the layout of `Pins` in src/pins/datapath.rs.

#include <cstdint>
#include <cstring>
#include <new>

#include "Vdatapath.h"
#include "verilated.h"

struct DatapathPins {
    // Inputs.
    uint32_t in_data[16];
    uint32_t command[16];
    uint64_t in_keep;
    uint8_t rst, in_valid, in_last, in_bad, in_port, out_ready, command_valid, miss_output;
    uint8_t read_valid, read_ppu;
    uint16_t read_index;
    // Outputs, as they are before the clock edge.
    uint32_t out_data[16];
    uint64_t out_keep;
    uint32_t out_egress;
    uint8_t out_valid, out_last, command_ready, done, refused, read_ready, reply_valid, reply_exists;
    uint32_t counters[18];
};

namespace {
struct Datapath {
    VerilatedContext context;
    Vdatapath* top = nullptr;
};
static_assert(sizeof(static_cast<Vdatapath*>(nullptr)->command) == sizeof(DatapathPins::command), "command_t");
static_assert(sizeof(static_cast<Vdatapath*>(nullptr)->counters) == sizeof(DatapathPins::counters), "counters");
}  // namespace

extern "C" size_t datapath_pins_bytes() { return sizeof(DatapathPins); }

// Registers without a reset have random values, which depend on the seed. Returns null if memory is short.
extern "C" Datapath* datapath_new(uint32_t seed) {
    Datapath* datapath = nullptr;
    try {
        datapath = new Datapath;
        datapath->context.randReset(2);
        datapath->context.randSeed(static_cast<int>(seed & 0x7fffffff));
        datapath->top = new Vdatapath{&datapath->context};
        return datapath;
    } catch (const std::bad_alloc&) {
        delete datapath;
        return nullptr;
    }
}

extern "C" void datapath_delete(Datapath* datapath) {
    delete datapath->top;
    delete datapath;
}

extern "C" void datapath_clock(Datapath* datapath, DatapathPins* pins) {
    Vdatapath& top = *datapath->top;
    top.rst = pins->rst;
    top.in_valid = pins->in_valid;
    if (pins->in_valid) {
        std::memcpy(&top.in_data, pins->in_data, sizeof pins->in_data);
        top.in_keep = pins->in_keep;
        top.in_last = pins->in_last;
        top.in_bad = pins->in_bad;
        top.in_port = pins->in_port;
    }
    top.out_ready = pins->out_ready;
    top.command_valid = pins->command_valid;
    if (pins->command_valid) std::memcpy(&top.command, pins->command, sizeof pins->command);
    top.miss_output = pins->miss_output;
    top.read_valid = pins->read_valid;
    top.read_ppu = pins->read_ppu;
    top.read_index = pins->read_index;
    top.clk = 0;
    top.eval();
    pins->out_valid = top.out_valid;
    if (top.out_valid) {
        std::memcpy(pins->out_data, &top.out_data, sizeof pins->out_data);
        pins->out_keep = top.out_keep;
        pins->out_last = top.out_last;
        pins->out_egress = top.out_egress;
    }
    pins->command_ready = top.command_ready;
    pins->done = top.done;
    pins->refused = top.refused;
    pins->read_ready = top.read_ready;
    pins->reply_valid = top.reply_valid;
    pins->reply_exists = top.reply_exists;
    std::memcpy(pins->counters, &top.counters, sizeof pins->counters);
    top.clk = 1;
    top.eval();
}
