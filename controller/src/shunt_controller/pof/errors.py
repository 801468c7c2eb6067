# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package, and the names of POF's error codes.

POF has the error types and codes of OpenFlow 1.3. It adds the types 14 and 15, and gives the codes of the
types 7 and 8 other meanings.
"""


class PofError(Exception):
    """Base class of the exceptions of this package."""


class DecodeError(PofError):
    """Bytes that are not a message of the dialect."""

    def __init__(self, message: str, offset: int, reason: str) -> None:
        super().__init__(f"{message}, byte {offset}: {reason}")
        self.message = message
        """Name of the message, such as "FLOW_MOD"."""
        self.offset = offset
        """Offset in bytes from the start of the message, including its header of 8 bytes."""
        self.reason = reason
        """What is wrong at the offset."""


class Fault(PofError):
    """A fault at an offset of a structure, before the message is known. :class:`DecodeError` replaces it."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"byte {offset}: {reason}")
        self.offset = offset
        self.reason = reason

    def within(self, offset: int) -> "Fault":
        """Returns the fault as one of the structure that contains this one at an offset."""
        return Fault(self.offset + offset, self.reason)


class EncodeError(PofError):
    """A message that the dialect cannot express."""


TYPES = {
    0: "POFET_HELLO_FAILED",
    1: "POFET_BAD_REQUEST",
    2: "POFET_BAD_ACTION",
    3: "POFET_BAD_INSTRUCTION",
    4: "POFET_BAD_MATCH",
    5: "POFET_FLOW_MOD_FAILED",
    6: "POFET_GROUP_MOD_FAILED",
    7: "POFET_PORT_MOD_FAILED",
    8: "POFET_TABLE_MOD_FAILED",
    9: "POFET_QUEUE_OP_FAILED",
    10: "POFET_SWITCH_CONFIG_FAILED",
    11: "POFET_ROLE_REQUEST_FAILED",
    12: "POFET_METER_MOD_FAILED",
    13: "POFET_TABLE_FEATURES_FAILED",
    14: "POFET_SOFTWARE_FAILED",
    15: "POFET_COUNTER_MOD_FAILED",
}
"""Names of the error types."""

# Prefix of the names of a type's codes, and the names from code 0 on. `-` stands for a code without a name.
_CODES = {
    0: ("POFHFC", "INCOMPATIBLE EPERM"),
    1: (
        "POFBRC",
        "BAD_VERSION BAD_TYPE BAD_MULTIPART BAD_EXPERIMENTER BAD_EXP_TYPE EPERM BAD_LEN BUFFER_EMPTY "
        "BUFFER_UNKNOWN BAD_TABLE_ID IS_SLAVE BAD_PORT BAD_PACKET MULTIPART_BUFFER_OVERFLOW",
    ),
    2: (
        "POFBAC",
        "BAD_TYPE BAD_LEN BAD_EXPERIMENTER BAD_EXP_TYPE BAD_OUT_PORT BAD_ARGUMENT EPERM TOO_MANY BAD_QUEUE "
        "BAD_OUT_GROUP MATCH_INCONSISTENT UNSUPPORTED_ORDER BAD_TAG BAD_SET_TYPE BAD_SET_LEN BAD_SET_ARGUMENT "
        "BAD_TABLE_ID",
    ),
    3: (
        "POFBIC",
        "UNKNOWN_INST UNSUP_INST BAD_TABLE_ID UNSUP_METADATA UNSUP_METADATA_MASK BAD_EXPERIMENTER BAD_EXP_TYPE "
        "BAD_LEN EPERM TOO_MANY_ACTIONS - - - - - - - TABLE_UNEXIST ENTRY_UNEXIST BAD_OFFSET JUM_TO_INVALID_INST",
    ),
    4: (
        "POFBMC",
        "BAD_TYPE BAD_LEN BAD_TAG BAD_DL_ADDR_MASK BAD_NW_ADDR_MASK BAD_WILDCARDS BAD_FIELD BAD_VALUE BAD_MASK "
        "BAD_PREREQ DUP_FIELD EPERM",
    ),
    5: (
        "POFFMFC",
        "UNKNOWN TABLE_FULL BAD_TABLE_ID OVERLAP EPERM BAD_TIMEOUT BAD_COMMAND BAD_FLAGS ENTRY_EXIST "
        "ENTRY_UNEXIST BAD_TABLE_TYPE BAD_ENTRY_ID BAD_COUNTER_ID",
    ),
    6: (
        "POFGMFC",
        "GROUP_EXISTS INVALID_GROUP WEIGHT_UNSUPPORTED OUT_OF_GROUPS OUT_OF_BUCKETS CHAINING_UNSUPPORTED "
        "WATCH_UNSUPPORTED LOOP UNKNOWN_GROUP CHAINED_GROUP BAD_TYPE BAD_COMMAND BAD_BUCKET BAD_WATCH EPERM "
        "BAD_COUNTER_ID",
    ),
    7: ("POFPMFC", "UNKNOWN BAD_PORT_ID"),
    8: (
        "POFTMFC",
        "UNKNOWN BAD_COMMAND BAD_TABLE_TYPE BAD_TABLE_ID TABLE_EXIST TABLE_UNEXIST BAD_TABLE_SIZE BAD_KEY_LEN "
        "TABLE_UNEMPTY",
    ),
    12: (
        "POFMMFC",
        "UNKNOWN METER_EXISTS INVALID_METER UNKNOWN_METER BAD_COMMAND BAD_FLAGS BAD_RATE BAD_BURST BAD_BAND "
        "BAD_BAND_VALUE OUT_OF_METERS OUT_OF_BANDS",
    ),
    15: ("POFCMFC", "UNKNOWN BAD_COUNTER_ID BAD_COMMAND COUNTER_UNEXIST COUNTER_EXIST"),
}


def error_name(kind: int, code: int) -> str:
    """Returns the name of an error code in the public headers, or else its type and code."""
    prefix, names = _CODES.get(kind, ("", ""))
    listed = names.split()
    if code < len(listed) and listed[code] != "-":
        return f"{prefix}_{listed[code]}"
    return f"{TYPES.get(kind, f'error type {kind}')} code {code}"


class RefusedError(PofError):
    """Requests that the switch refused."""

    def __init__(self, refusals: list[str]) -> None:
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        super().__init__(f"the switch refused {refusals[0]}{more}")
        self.refusals = refusals
        """A description of each refusal."""


class BusyError(PofError):
    """The switch does not receive messages as fast as they are sent."""


class ClosedError(PofError):
    """The connection to the switch ended."""
