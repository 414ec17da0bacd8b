"""Times in tables: text, numbers and Parquet timestamps to seconds, and the zones they were in."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from fanplan.data.read.formats import Physical
from fanplan.workload.times import DAY_NAME, PER_SECOND, Clock, read_format

NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
OFFSET = r"(Z|[+-]\d\d(?::?\d\d)?)"
ISO_8601 = rf"^\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?{OFFSET}?)?$"
ISO_BASIC = rf"^(\d{{4}})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)((?:\.\d+)?{OFFSET}?)$"
EXTENDED = "$1-$2-$3T$4:$5:$6$7"
NO_SECONDS = rf"([T ]\d\d:\d\d)({OFFSET}?)$"


def as_number(given: Column, physical: Physical) -> Column:
    """A double. Java would also take ``1d`` and ``0x1p3``, which no table means as numbers."""
    if physical != "string":
        return given.cast("double")
    return F.when(given.rlike(NUMBER), given.try_cast("double"))


def as_seconds(given: Column, physical: Physical, clock: Clock) -> Column:
    """Seconds. Texts are of the user's format if there is one, else numbers or ISO 8601."""
    if physical == "instant":
        return given
    if physical == "local":
        return given if clock.zone is None else placed(F.timestamp_seconds(given), clock)
    if physical == "string" and clock.format:
        return formatted(given, clock)
    number = as_number(given, physical) / F.lit(PER_SECOND[clock.unit])
    return F.coalesce(number, iso_column(given, clock)) if physical == "string" else number


def formatted(given: Column, clock: Clock) -> Column:
    """Seconds of a text in the user's format."""
    format = read_format(str(clock.format))
    text = F.regexp_replace(given, DAY_NAME, "") if format.named_days else given
    stamp = F.when(given.rlike(format.text), F.try_to_timestamp(text, F.lit(format.pattern)))
    return stamp.cast("double") if format.zoned else placed(stamp, clock)


def iso_column(given: Column, clock: Clock) -> Column:
    """Seconds of an ISO 8601 text, also of one without hyphens and colons."""
    text = extended_iso(given)
    stamp = F.when(text.rlike(ISO_8601), text.try_cast("timestamp"))
    if clock.zone is None:
        return stamp.cast("double")
    return F.when(offset_in(text) == "", placed(stamp, clock)).otherwise(stamp.cast("double"))


def extended_iso(given: Column) -> Column:
    """An ISO 8601 text as Spark takes it: with all its signs, and with seconds."""
    text = F.regexp_replace(F.translate(given, "tz,", "TZ."), ISO_BASIC, EXTENDED)
    return F.regexp_replace(text, NO_SECONDS, "$1:00$2")


def offset_in(text: Column) -> Column:
    """What an ISO 8601 text says of its zone; nothing if it says nothing."""
    return F.regexp_extract(text, rf"[T ].*{OFFSET}$", 1)


def placed(stamp: Column, clock: Clock) -> Column:
    """Seconds of a time that says no zone: it is in that of the workload.

    Where clocks are put back it is the first of the two; where they are put on, as if they had not
    been.
    """
    if clock.zone is None:
        return stamp.cast("double")
    return F.to_utc_timestamp(stamp, clock.zone).cast("double")


def zone_in(given: Column, physical: Physical, clock: Clock, zone: str | None) -> Column:
    """The zone in which a time was written; null if it is only a number.

    ``zone`` is that of a Parquet column.
    """
    own = F.lit(clock.zone_name)
    if physical == "instant":
        return F.lit(zone)
    if physical == "local":
        return own
    if physical != "string":
        return F.lit(None).cast("string")
    if clock.format:
        format = read_format(clock.format)
        return F.regexp_extract(given, format.text, 1) if format.zoned else own
    said = F.coalesce(F.nullif(offset_in(extended_iso(given)), F.lit("")), own)
    return F.when(~given.rlike(NUMBER), said)
