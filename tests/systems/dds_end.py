"""One end of DDS in a process of its own: a writer or a reader of a topic in a partition.

``dds_end.py write|read TOPIC PARTITION COUNT``. A writer waits for two readers, and a reader prints
what it got.
"""

# Types of samples are read at run time: annotations must not be postponed.
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic


@dataclass
class Sample(IdlStruct, typename="Sample"):
    number: int


def main(what: str, name: str, partition: str, count: int) -> None:
    participant = DomainParticipant(0)
    kept = Qos(Policy.Reliability.Reliable(10**9), Policy.History.KeepAll)
    topic = Topic(participant, name, Sample, qos=kept)
    within = Qos(Policy.Partition([partition]))
    print("started", flush=True)
    if what == "write":
        writer = DataWriter(Publisher(participant, qos=within), topic, qos=kept)
        await_that(lambda: len(writer.get_matched_subscriptions()) == 2)
        for number in range(count):
            writer.write(Sample(number))
        await_that(lambda: not writer.get_matched_subscriptions())
        return
    reader = DataReader(Subscriber(participant, qos=within), topic, qos=kept)
    got: list[int] = []

    def read() -> bool:
        got.extend(sample.number for sample in reader.take(count))
        return len(got) >= count

    await_that(read)
    print(*got, flush=True)


def await_that(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what() and time.monotonic() < end:
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
