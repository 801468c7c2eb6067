// SPDX-License-Identifier: Apache-2.0
//! Queues that wrap another queue.

/// Implements the methods of [`port::Queue`] that a wrapper does not change: all except `receive` and
/// `transmit`. The parameter is the field with the wrapped queue.
#[macro_export]
macro_rules! as_wrapped_queue {
    ($queue:tt) => {
        fn capabilities(&self) -> ::port::Capabilities {
            self.$queue.capabilities()
        }

        fn descriptor(&self) -> ::std::option::Option<::std::os::fd::RawFd> {
            self.$queue.descriptor()
        }

        fn statistics(&self) -> ::port::Statistics {
            self.$queue.statistics()
        }

        fn poll_link(&mut self) -> ::port::Link {
            self.$queue.poll_link()
        }
    };
}
