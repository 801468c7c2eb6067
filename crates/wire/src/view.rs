// SPDX-License-Identifier: Apache-2.0
//! Common parts of the protocol views: big-endian fields at fixed offsets, and one length check.

/// Error of a view: the bytes do not contain the expected header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {header} in {len} bytes: truncated or inconsistent; at least {len_min} bytes are needed")]
pub struct Malformed {
    /// Name of the expected header.
    pub header: &'static str,
    /// Number of bytes available.
    pub len: usize,
    /// Minimum number of bytes of the header.
    pub len_min: usize,
}

/// Value stored in network byte order.
pub(crate) trait Field: Sized {
    /// Reads the value from the first bytes of `bytes`.
    fn load(bytes: &[u8]) -> Self;
    /// Writes the value to the first bytes of `bytes`.
    fn store(self, bytes: &mut [u8]);
}

impl<const N: usize> Field for [u8; N] {
    fn load(bytes: &[u8]) -> Self {
        let mut value = [0; N];
        value.copy_from_slice(&bytes[..N]);
        value
    }

    fn store(self, bytes: &mut [u8]) {
        bytes[..N].copy_from_slice(&self);
    }
}

impl Field for u8 {
    fn load(bytes: &[u8]) -> Self {
        bytes[0]
    }

    fn store(self, bytes: &mut [u8]) {
        bytes[0] = self;
    }
}

impl Field for u16 {
    fn load(bytes: &[u8]) -> Self {
        Self::from_be_bytes(Field::load(bytes))
    }

    fn store(self, bytes: &mut [u8]) {
        self.to_be_bytes().store(bytes);
    }
}

impl Field for u32 {
    fn load(bytes: &[u8]) -> Self {
        Self::from_be_bytes(Field::load(bytes))
    }

    fn store(self, bytes: &mut [u8]) {
        self.to_be_bytes().store(bytes);
    }
}

/// Defines a view: its name, its title in errors, its minimum length, an additional check, and its fields as
/// `offset: getter, setter, type`.
macro_rules! view {
    (
        $(#[$doc:meta])* $name:ident, $title:literal, $len_min:literal, $check:expr;
        $( $(#[$field_doc:meta])* $at:literal: $get:ident, $set:ident, $kind:ty; )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T> {
            buffer: T,
        }

        impl<T: AsRef<[u8]>> $name<T> {
            /// Checks that the header is complete and valid. After this check, no accessor can fail.
            ///
            /// # Errors
            /// Returns [`Malformed`](crate::Malformed) if the header is incomplete or invalid.
            pub fn new_checked(buffer: T) -> Result<Self, $crate::Malformed> {
                let bytes = buffer.as_ref();
                let check: fn(&[u8]) -> bool = $check;
                if bytes.len() < $len_min || !check(bytes) {
                    return Err($crate::Malformed { header: $title, len: bytes.len(), len_min: $len_min });
                }
                Ok(Self { buffer })
            }

            /// Returns the underlying bytes.
            pub fn into_inner(self) -> T {
                self.buffer
            }

            $(
                $(#[$field_doc])*
                pub fn $get(&self) -> $kind {
                    $crate::view::Field::load(&self.buffer.as_ref()[$at..])
                }
            )*
        }

        impl<T: AsRef<[u8]> + AsMut<[u8]>> $name<T> {
            $(
                #[doc = concat!("Sets the field that [`", stringify!($get), "`](Self::", stringify!($get), ") reads, without updating any checksum.")]
                pub fn $set(&mut self, value: $kind) {
                    $crate::view::Field::store(value, &mut self.buffer.as_mut()[$at..]);
                }
            )*
        }
    };
}
pub(crate) use view;
