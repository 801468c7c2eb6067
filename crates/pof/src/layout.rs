// SPDX-License-Identifier: Apache-2.0
//! Layout tables: the position of each field in each dialect, and the code that reads and writes by them.
//!
//! A structure of POF has a fixed size. Its layout is one table with a column per dialect, from which
//! [`record!`] makes the type, its decoder and its encoder. [`choice!`] makes the type of a field with few
//! valid numbers. [`union!`] makes a slot, which has a type, a length and the record of this type.
//!
//! Lengths are checked once, when the size of a message is compared with its layout. A read outside the bytes
//! yields zeros, so a wrong table cannot cause a panic. Unit tests check that all places are inside their
//! structure and do not overlap.

use crate::error::PofErrorCode;
use crate::value::PofField;

// The macros use these names.
pub(crate) use crate::dialect::PofDialect;
pub(crate) use crate::error::{Fault, PofEncodeError};
pub(crate) use crate::value::PofOperand;

/// Position of a field in its structure, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub at: usize,
    pub bytes: usize,
}

/// Position of a field in each dialect. `None` if the dialect has no such field.
pub(crate) type Places = [Option<Place>; PofDialect::ALL.len()];

/// Size of a structure in bytes in each dialect. `None` if the dialect has no such structure.
pub(crate) type Sizes = [Option<usize>; PofDialect::ALL.len()];

/// Field of a layout table, for documentation and tests of the tables.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub name: &'static str,
    pub places: Places,
}

/// Layout table of a structure, for documentation and tests of the tables.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub name: &'static str,
    pub number: u16,
    pub sizes: Sizes,
    pub rows: &'static [Row],
}

#[cfg(test)]
impl Table {
    pub const fn of<T: Record>(number: u16) -> Self {
        Self { name: T::NAME, number, sizes: T::SIZES, rows: T::ROWS }
    }
}

/// A value with a fixed number of bytes on the wire.
pub(crate) trait Wire: Sized {
    /// Reads the value from its bytes.
    fn read(bytes: &[u8], dialect: PofDialect) -> Result<Self, Fault>;
    /// Writes the value to its bytes, which are zero before.
    fn write(&self, bytes: &mut [u8], dialect: PofDialect) -> Result<(), PofEncodeError>;
}

/// A structure with a layout table.
pub(crate) trait Record: Wire {
    const SIZES: Sizes;
    /// Maximum number of bytes that follow the fixed part.
    const TAIL_MAX: usize;
    #[cfg(test)]
    const NAME: &'static str;
    #[cfg(test)]
    const ROWS: &'static [Row];

    /// Returns the number of bytes that follow the fixed part of this value.
    fn tail_bytes(&self) -> usize;
}

/// A value that is repeated at a fixed distance.
pub(crate) trait Slot: Wire {
    /// Distance in bytes in each dialect.
    const STRIDES: [usize; PofDialect::ALL.len()];
}

/// Count and slots of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListLayout {
    pub name: &'static str,
    pub count: Places,
    pub slots: Places,
    /// Error code if there are more items than slots.
    pub too_many: PofErrorCode,
}

/// Places of an operand's type and of the operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandLayout {
    pub name: &'static str,
    /// Without a type, the operand is a number.
    pub kind: Places,
    pub value: Places,
    /// Error code for an unknown type.
    pub bad_kind: PofErrorCode,
}

/// Returns the bytes at a place. Returns no bytes if they are outside the structure.
pub(crate) fn part(bytes: &[u8], place: Place) -> &[u8] {
    bytes.get(place.at..place.at + place.bytes).unwrap_or_default()
}

fn part_mut(bytes: &mut [u8], place: Place) -> &mut [u8] {
    bytes.get_mut(place.at..place.at + place.bytes).unwrap_or_default()
}

/// Returns at most 16 bytes as a number in network byte order.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Writes a number in network byte order.
pub(crate) fn put_number(
    mut value: u128,
    bytes: &mut [u8],
    dialect: PofDialect,
) -> Result<(), PofEncodeError> {
    for byte in bytes.iter_mut().rev() {
        *byte = value as u8;
        value >>= 8;
    }
    // The structure that contains the number knows its name.
    if value == 0 { Ok(()) } else { Err(PofEncodeError::Unfit { field: "", dialect }) }
}

pub(crate) fn field<T: Wire + Default>(
    bytes: &[u8],
    places: Places,
    dialect: PofDialect,
) -> Result<T, Fault> {
    let Some(place) = places[dialect.column()] else { return Ok(T::default()) };
    T::read(part(bytes, place), dialect).map_err(|fault| fault.within(place.at))
}

pub(crate) fn put_field<T: Wire + Default + PartialEq>(
    value: &T,
    name: &'static str,
    bytes: &mut [u8],
    places: Places,
    dialect: PofDialect,
) -> Result<(), PofEncodeError> {
    let Some(place) = places[dialect.column()] else {
        let absent = *value == T::default();
        return if absent { Ok(()) } else { Err(PofEncodeError::Unfit { field: name, dialect }) };
    };
    value.write(part_mut(bytes, place), dialect).map_err(|error| match error {
        PofEncodeError::Unfit { field: "", dialect } => PofEncodeError::Unfit { field: name, dialect },
        error => error,
    })
}

pub(crate) fn operand(
    bytes: &[u8],
    layout: &OperandLayout,
    dialect: PofDialect,
) -> Result<PofOperand, Fault> {
    let Some(place) = layout.value[dialect.column()] else { return Ok(PofOperand::default()) };
    let kind = layout.kind[dialect.column()];
    let within = |fault: Fault| fault.within(place.at);
    match kind.map_or(0, |kind| number(part(bytes, kind))) {
        0 => u32::read(part(bytes, Place { bytes: 4, ..place }), dialect).map(PofOperand::Number),
        1 => PofField::read(part(bytes, place), dialect).map(PofOperand::Field).map_err(within),
        other => Err(layout.bad_kind.at(
            kind.map_or(0, |kind| kind.at),
            format!("operand `{}` has type {other}; types are 0 (number) and 1 (field)", layout.name),
        )),
    }
}

pub(crate) fn put_operand(
    operand: PofOperand,
    bytes: &mut [u8],
    layout: &OperandLayout,
    dialect: PofDialect,
) -> Result<(), PofEncodeError> {
    let unfit = Err(PofEncodeError::Unfit { field: layout.name, dialect });
    let (kind, value) = (layout.kind[dialect.column()], layout.value[dialect.column()]);
    match (operand, kind, value) {
        (PofOperand::Number(0), _, None) => Ok(()),
        (_, _, None) | (PofOperand::Field(_), None, _) => unfit,
        (PofOperand::Number(number), _, Some(value)) => {
            number.write(part_mut(bytes, Place { bytes: 4, ..value }), dialect)
        }
        (PofOperand::Field(field), Some(kind), Some(value)) => {
            1u8.write(part_mut(bytes, kind), dialect)?;
            field.write(part_mut(bytes, value), dialect)
        }
    }
}

pub(crate) fn list<T: Slot>(bytes: &[u8], layout: &ListLayout, dialect: PofDialect) -> Result<Vec<T>, Fault> {
    let (Some(count), Some(slots)) = (layout.count[dialect.column()], layout.slots[dialect.column()]) else {
        return Ok(Vec::new());
    };
    let stride = T::STRIDES[dialect.column()];
    let max = slots.bytes.checked_div(stride).unwrap_or(0);
    let items = number(part(bytes, count));
    if items > max as u128 {
        let reason = format!("`{}` has {items} items; dialect {dialect} has space for {max}", layout.name);
        return Err(layout.too_many.at(count.at, reason));
    }
    (0..items as usize)
        .map(|item| {
            let at = slots.at + item * stride;
            T::read(part(bytes, Place { at, bytes: stride }), dialect).map_err(|fault| fault.within(at))
        })
        .collect()
}

pub(crate) fn put_list<T: Slot>(
    items: &[T],
    bytes: &mut [u8],
    layout: &ListLayout,
    dialect: PofDialect,
) -> Result<(), PofEncodeError> {
    let (field, column) = (layout.name, dialect.column());
    let (count, slots) = match (layout.count[column], layout.slots[column]) {
        (Some(count), Some(slots)) => (count, slots),
        _ if items.is_empty() => return Ok(()),
        _ => return Err(PofEncodeError::Unfit { field, dialect }),
    };
    let stride = T::STRIDES[column];
    let max = slots.bytes.checked_div(stride).unwrap_or(0);
    if items.len() > max {
        return Err(PofEncodeError::TooMany { field, count: items.len(), max, dialect });
    }
    put_number(items.len() as u128, part_mut(bytes, count), dialect)?;
    for (item, at) in items.iter().zip((slots.at..).step_by(stride)) {
        item.write(part_mut(bytes, Place { at, bytes: stride }), dialect)?;
    }
    Ok(())
}

/// `(-)` is `None`; `(at bytes)` is a place.
macro_rules! place {
    ((-)) => {
        None
    };
    (($at:literal $bytes:literal)) => {
        Some($crate::layout::Place { at: $at, bytes: $bytes })
    };
}

/// Places in both dialects.
macro_rules! places {
    ($a:tt $b:tt) => {
        [$crate::layout::place!($a), $crate::layout::place!($b)]
    };
}

/// `-` is `None`.
macro_rules! size {
    (-) => {
        None
    };
    ($bytes:literal) => {
        Some($bytes)
    };
}

/// Nothing is `None`.
macro_rules! only {
    () => {
        None
    };
    ($dialect:ident) => {
        Some($crate::dialect::PofDialect::$dialect)
    };
}

/// Declares a structure by its layout table. Places are `(offset bytes)` or `(-)`, first of dialect 1.2, then
/// of dialect 1.4.0.015. The brackets contain the sizes of the structure. The module that declares it imports
/// `layout` itself as well. `trim` changes a decoded structure, and `check` then decides whether it is valid.
macro_rules! record {
    (
        $(#[$doc:meta])*
        pub struct $name:ident: $text:literal [$size_a:tt $size_b:tt] {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $field_a:tt $field_b:tt $(else $field_code:path)?,)*
        }
        $(operands $bad_kind:path {
            $($(#[$operand_doc:meta])* $operand:ident = kind $kind_a:tt $kind_b:tt, value $value_a:tt $value_b:tt,)*
        })?
        $(lists {
            $($(#[$list_doc:meta])*
            $list:ident: $item:ty = count $count_a:tt $count_b:tt, slots $slots_a:tt $slots_b:tt, else $too_many:path,)*
        })?
        $(tail { $(#[$tail_doc:meta])* $tail:ident: $tail_max:expr })?
        $(trim $trim:path;)?
        $(check $check:path;)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            $($($(#[$operand_doc])* pub $operand: layout::PofOperand,)*)?
            $($($(#[$list_doc])* pub $list: Vec<$item>,)*)?
            $($(#[$tail_doc])* pub $tail: Vec<u8>,)?
        }

        impl layout::Wire for $name {
            fn read(bytes: &[u8], dialect: layout::PofDialect) -> Result<Self, layout::Fault> {
                let made = Self {
                    $($field: layout::field(bytes, layout::places!($field_a $field_b), dialect)
                        $(.map_err(|fault: layout::Fault| fault.with_code($field_code)))??,)*
                    $($($operand: layout::operand(bytes, &layout::OperandLayout {
                        name: stringify!($operand),
                        kind: layout::places!($kind_a $kind_b),
                        value: layout::places!($value_a $value_b),
                        bad_kind: $bad_kind,
                    }, dialect)?,)*)?
                    $($($list: layout::list(bytes, &layout::ListLayout {
                        name: stringify!($list),
                        count: layout::places!($count_a $count_b),
                        slots: layout::places!($slots_a $slots_b),
                        too_many: $too_many,
                    }, dialect)?,)*)?
                    $($tail: {
                        let fixed = <Self as layout::Record>::SIZES[dialect.column()].unwrap_or(0);
                        bytes.get(fixed..).unwrap_or_default().to_vec()
                    },)?
                };
                $(
                    let mut made = made;
                    $trim(&mut made);
                )?
                $($check(&made)?;)?
                Ok(made)
            }

            fn write(
                &self,
                bytes: &mut [u8],
                dialect: layout::PofDialect,
            ) -> Result<(), layout::PofEncodeError> {
                $($check(self).map_err(|fault| layout::PofEncodeError::Invalid(fault.reason))?;)?
                $(layout::put_field(
                    &self.$field, stringify!($field), bytes, layout::places!($field_a $field_b), dialect,
                )?;)*
                $($(layout::put_operand(self.$operand, bytes, &layout::OperandLayout {
                    name: stringify!($operand),
                    kind: layout::places!($kind_a $kind_b),
                    value: layout::places!($value_a $value_b),
                    bad_kind: $bad_kind,
                }, dialect)?;)*)?
                $($(layout::put_list(&self.$list, bytes, &layout::ListLayout {
                    name: stringify!($list),
                    count: layout::places!($count_a $count_b),
                    slots: layout::places!($slots_a $slots_b),
                    too_many: $too_many,
                }, dialect)?;)*)?
                $(
                    let fixed = <Self as layout::Record>::SIZES[dialect.column()].unwrap_or(0);
                    if let Some(rest) = bytes.get_mut(fixed..).filter(|rest| rest.len() == self.$tail.len()) {
                        rest.copy_from_slice(&self.$tail);
                    }
                )?
                Ok(())
            }
        }

        impl layout::Record for $name {
            const SIZES: layout::Sizes = [layout::size!($size_a), layout::size!($size_b)];
            const TAIL_MAX: usize = 0 $(+ $tail_max)?;
            #[cfg(test)]
            const NAME: &'static str = $text;
            #[cfg(test)]
            const ROWS: &'static [layout::Row] = &[
                $(layout::Row {
                    name: stringify!($field),
                    places: layout::places!($field_a $field_b),
                },)*
                $($(layout::Row {
                    name: concat!("type of ", stringify!($operand)),
                    places: layout::places!($kind_a $kind_b),
                },
                layout::Row {
                    name: stringify!($operand),
                    places: layout::places!($value_a $value_b),
                },)*)?
                $($(layout::Row {
                    name: concat!("number of ", stringify!($list)),
                    places: layout::places!($count_a $count_b),
                },
                layout::Row {
                    name: stringify!($list),
                    places: layout::places!($slots_a $slots_b),
                },)*)?
            ];

            fn tail_bytes(&self) -> usize {
                0 $(+ self.$tail.len())?
            }
        }
    };
}

/// Declares the numbers that a field may have. `only` names the dialect that alone has the number.
macro_rules! choice {
    (
        $(#[$doc:meta])*
        pub enum $name:ident: $text:literal, else $code:path {
            $($(#[$variant_doc:meta])* $variant:ident = $number:literal $(only $only:ident)?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::VALUES[0].0
            }
        }

        impl $name {
            /// All values with their numbers, and the dialect that alone has the value.
            const VALUES: &'static [(Self, u8, Option<layout::PofDialect>)] = &[
                $((Self::$variant, $number, layout::only!($($only)?)),)*
            ];

            fn has(only: Option<layout::PofDialect>, dialect: layout::PofDialect) -> bool {
                only.is_none_or(|only| only == dialect)
            }
        }

        impl layout::Wire for $name {
            fn read(bytes: &[u8], dialect: layout::PofDialect) -> Result<Self, layout::Fault> {
                let number = layout::number(bytes);
                let mut known = Self::VALUES.iter().filter(|(_, _, only)| Self::has(*only, dialect));
                match known.clone().find(|(_, value, _)| u128::from(*value) == number) {
                    Some((value, _, _)) => Ok(*value),
                    None => {
                        let last = known.next_back().map_or(0, |(_, value, _)| *value);
                        let reason = format!(concat!($text, " {}; values are 0 to {}"), number, last);
                        Err($code.at(0, reason))
                    }
                }
            }

            fn write(
                &self,
                bytes: &mut [u8],
                dialect: layout::PofDialect,
            ) -> Result<(), layout::PofEncodeError> {
                let known = Self::VALUES.iter().any(|(value, _, only)| value == self && Self::has(*only, dialect));
                if !known {
                    return Err(layout::PofEncodeError::Unfit { field: "", dialect });
                }
                layout::put_number(*self as u128, bytes, dialect)
            }
        }
    };
}

/// Declares a slot by the records that it may contain. A slot has a type (2 bytes) and a length (2 bytes),
/// and the record begins after `header` bytes.
macro_rules! union {
    (
        $(#[$doc:meta])*
        pub enum $name:ident: $text:literal, strides [$stride_a:literal $stride_b:literal], header $header:literal,
            unknown $unknown:path, unsupported $unsupported:path, reserved [$($reserved:literal)*] {
            $($(#[$variant_doc:meta])* $variant:ident($record:ty) = $number:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant($record),)*
        }

        impl layout::Slot for $name {
            const STRIDES: [usize; 2] = [$stride_a, $stride_b];
        }

        impl layout::Wire for $name {
            fn read(bytes: &[u8], dialect: layout::PofDialect) -> Result<Self, layout::Fault> {
                let kind = layout::number(layout::part(bytes, layout::Place { at: 0, bytes: 2 }));
                let content = |sizes: layout::Sizes| match sizes[dialect.column()] {
                    Some(size) => Ok(layout::part(bytes, layout::Place { at: $header, bytes: size })),
                    None => Err($unsupported.at(
                        0,
                        format!(concat!($text, " of type {} is not part of dialect {}"), kind, dialect),
                    )),
                };
                match kind {
                    $($number => {
                        let content = content(<$record as layout::Record>::SIZES)?;
                        let record = <$record as layout::Wire>::read(content, dialect);
                        record.map(Self::$variant).map_err(|fault| fault.within($header))
                    })*
                    $($reserved)|* => {
                        let reason = format!(concat!($text, " of type {} is not supported"), kind);
                        Err($unsupported.at(0, reason))
                    }
                    _ => Err($unknown.at(0, format!(concat!($text, " of type {} is unknown"), kind))),
                }
            }

            fn write(
                &self,
                bytes: &mut [u8],
                dialect: layout::PofDialect,
            ) -> Result<(), layout::PofEncodeError> {
                let (kind, size): (u128, Option<usize>) = match self {
                    $(Self::$variant(_) => ($number, <$record as layout::Record>::SIZES[dialect.column()]),)*
                };
                let Some(size) = size else {
                    let what = match self {
                        $(Self::$variant(_) => stringify!($variant),)*
                    };
                    return Err(layout::PofEncodeError::Missing { what, dialect });
                };
                let Some((head, content)) = bytes.split_at_mut_checked($header) else { return Ok(()) };
                layout::put_number(kind << 16 | ($header + size) as u128, &mut head[..4], dialect)?;
                let content = content.get_mut(..size).unwrap_or_default();
                match self {
                    $(Self::$variant(record) => layout::Wire::write(record, content, dialect),)*
                }
            }
        }

        #[cfg(test)]
        impl $name {
            /// Length of the slot's header, and its tables with their numbers.
            pub(crate) const TABLES: (usize, &[layout::Table]) =
                ($header, &[$(layout::Table::of::<$record>($number)),*]);
        }
    };
}

pub(crate) use {choice, only, place, places, record, size, union};
