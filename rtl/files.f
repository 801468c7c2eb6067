rtl/pkg/device_pkg.sv
rtl/pkg/pipeline_pkg.sv
rtl/lutram/RAM32M16.sv
rtl/lutram/lutram.sv
rtl/fifo/fifo.sv
rtl/delay_line/delay_line.sv
rtl/frame_buffer/frame_buffer.sv
