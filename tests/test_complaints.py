import time

from langchain_judges.asking.faults import complaint_of
from tests.cases import for_each

SETTINGS = ("temperature", "seed")


class Refused(Exception):
    def __init__(self, message, param=None):
        super().__init__(message)
        self.body = {"message": message, "param": param}


@for_each(
    ("message", "param", "setting"),
    [
        ("Unsupported value: 'temperature'", None, "temperature"),
        ("This model only allows the default. It has no `seed`.", None, None),
        ("anything", "temperature", "temperature"),
        ("Unsupported value: 'temperature'", "messages[0].content", None),
        ("I read: weather. Temperature unsupported", None, None),
        ("Invalid text: 'temperature unsupported'", None, None),
    ],
)
def test_a_setting_is_refused_by_the_provider_and_not_by_a_text_it_quotes(
    message, param, setting
):
    complaint = complaint_of(Refused(message, param), ["Today's temperature unsupported."])
    assert complaint.refused(SETTINGS) == setting


@for_each(
    ("message", "param", "rejected"),
    [
        ("response_format of this type is unavailable", None, True),
        ("There is no such model.", None, False),
        ("anything", "response_format.json_schema", True),
        ("response_format is unavailable", "messages", False),
        ("The text 'my json_schema fails' is not allowed", None, False),
    ],
)
def test_a_format_is_rejected_by_the_provider_and_not_by_a_text_it_quotes(
    message, param, rejected
):
    complaint = complaint_of(Refused(message, param), ["So my json_schema fails again"])
    assert complaint.format_rejected == rejected


def test_a_complaint_of_a_megabyte_is_read_in_a_moment():
    # Seconds of this process; the first pattern for it was quadratic.
    message = "unsupported tools " * 60_000
    began = time.process_time()
    complaint_of(Refused(message), [message]).refused(SETTINGS)
    assert complaint_of(Refused("tools " * 200_000), []).format_rejected is False
    assert time.process_time() - began < 10
