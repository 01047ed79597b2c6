"""Coverage by hand: which concepts a reader would find in a text."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from langchain_judges.errors import OptionError
from langchain_judges.writing.coverage import check_word_forms, fold, losses, missing, present
from tests.cases import for_each

# A concept, and a text that has it.
FOUND = """
run / They ran home. | bite / The dog bit him. | tie / He is tying it. | big / the biggest box
child / Two children sang. | children / A child sang. | leaf / The leaves fell.
leave / He leaves. | bus / two buses | story / old stories | tattoo / covered in tattoos
sunglass / She wore sunglasses. | tricep / his triceps | tattoos / one tattoo
person / Two people waved. | oxen / an ox | toddler / TODDLER | dog / the dogs’ bones
vest / a **vest**, _red_ | wall / well/wall | ice cream / two ice creams
ice cream / an ice-cream van | ice-cream / He ate ice cream. | ice cream / Icecream!
e-mail / an email | mother-in-law / both mothers-in-law came | pick up / She picked up a coin.
car / a car-free street | well‑known / a well-known tune | café / two cafés
café / CAFE\u0301 | Straße / die STRASSE | дом / Дом стоит. | 猫 / 黒猫が走る
C++ / She writes C++. | C++ / C++11 code | AT&T / at&t called | 24 / 24 hours | dog / Step 3:dog
"""
NOT_FOUND = """
car / a scar on his cheek | car / careful carpets and care | ring / a spring | new / the news
organ / an organization | universe / a university | police / a policy | people / one person
skateboarder / a skateboard | hop / I hope and am hoping. | saw / He sees it.
building / They build. | evening / even so | ice cream / Ice is cream-coloured.
ice cream / cream ice | mother-in-law / her mother and the law | café / a caf
C++ / She writes C. | dom / дом
"""


def pairs(table: str) -> list[list[str]]:
    return [pair.strip().split(" / ", 1) for pair in table.replace("\n", "|").split("|") if pair]


@pytest.mark.whole
@for_each(("concept", "text"), pairs(FOUND))
def test_a_concept_is_there_in_any_of_its_forms(concept, text):
    assert present(concept, text)


@for_each(("concept", "text"), [*pairs(NOT_FOUND), ("snow", ""), ("", "snow"), ("  ", "a")])
def test_a_concept_is_not_there_in_another_word(concept, text):
    assert not present(concept, text)


STRICT = [
    ("run", "He will Run.", True),
    ("run", "He runs.", False),
    ("ice cream", "an ice\n cream", True),
    ("ice cream", "an ice-cream", False),
    ("café", "cafés", False),
    ("C++", "C++11", True),
    ("猫", "黒猫", True),
]


@for_each(("concept", "text", "there"), STRICT)
def test_strictly_only_the_exact_form_counts(concept, text, there):
    assert present(concept, text, strict=True) is there


def test_a_loss_belongs_to_the_step_that_lost_it():
    result = losses(
        ["vest", "snow", "wall", "pit", "deck"],
        [["vest", "snow"], ["wall", "pit"], ["deck"]],
        ["A vest.", "A wall.", None],
        "Snow on the walls.",
    )
    # snow: not in its draft, but in the text all the same.
    assert result == [
        {"concept": "vest", "lost_in": "merge"},
        {"concept": "pit", "lost_in": "solve"},
        {"concept": "deck", "lost_in": "solve"},
    ]


@settings(max_examples=15)
@given(st.text(max_size=12), st.text(max_size=30), st.text(max_size=30))
def test_what_stands_in_a_text_on_its_own_is_found(concept, before, after):
    text = f"{before} . {concept} . {after}"
    assert present(concept, text, strict=True) is bool(fold(concept).split())
    if present(concept, text, strict=True):
        assert present(concept, text)


ATOMS = [
    "C",
    "C++",
    "C#",
    "10",
    "10,000",
    "10.5",
    "10:30",
    "v10",
    ".NET",
    "ASP.NET",
    "#fun",
    "#funny",
]
ATOMS += [
    "👨‍👩‍👧",
    "👨‍👩‍👧‍👦",
    "👧",
    "❤️",
    "😀",
    "कि",
    "किताब",
    "كِتَاب",
    "كِ",
    "e",
    "e\u0323\u0302",
    "at&t",
    "at",
    "R&D",
    "d",
]


@settings(max_examples=60)
@example(concept="at", others=["at&t"], form="{}", strict=False)
@example(concept="d", others=["R&D"], form="{}", strict=True)
@given(
    st.sampled_from(ATOMS),
    st.lists(st.sampled_from(ATOMS), max_size=4),
    st.sampled_from(["{}", "({})", "{}.", "{}, ", "*{}*", "{}!"]),
    st.booleans(),
)
def test_no_sign_number_or_letter_is_found_in_a_longer_one(concept, others, form, strict):
    text = " ".join(form.format(other) for other in others)
    assert present(concept, text, strict=strict) is (concept in others)


def test_words_that_are_joined_by_a_sign_are_words():
    assert present("salt", "salt&pepper")
    assert present("pepper", "salt&pepper", strict=True)


@for_each(("concept", "text"), [("ılık", "ILIK"), ("istanbul", "İSTANBUL"), ("I", "ı")])
def test_capitals_of_turkish_do_not_count(concept, text):
    assert present(concept, text, language="turkish", strict=True)
    assert present(text, concept, language="turkish", strict=True)


@for_each(("concept", "text"), [("❤️", "I ❤ it"), ("İstanbul", "istanbul")])
def test_how_a_sign_is_displayed_does_not_count(concept, text):
    assert present(concept, text)


FORMS = """
ran/run mice/mouse went/go wrapped/wrap stood/stand caught/catch threw/throw teeth/tooth
knives/knife women/woman better/good driven/drive lying/lie dying/die quickly/quick
geese/goose was/be happily/happy runner/run wrapping/wrap bought/buy thought/think
wolves/wolf hit/hit cutting/cut heroes/hero photos/photo analyses/analysis left/leave
frozen/freeze skiing/ski sewn/sew lain/lie dice/die calves/calf thieves/thief sheep/sheep
fled/flee hung/hang led/lead lost/lose meant/mean paid/pay sought/seek swore/swear
"""


def test_of_many_forms_only_derivations_are_missed():
    forms = [pair.split("/") for pair in FORMS.split()]
    missed = [form for form, concept in forms if not present(concept, f"So {form} it.")]
    assert missed == ["quickly", "happily", "runner"]


@pytest.mark.whole
@for_each(
    ("language", "concept", "text"),
    [("czech", "kniha", "Na stole jsou knihy."), ("german", "Haus", "Zwei Häuser am See.")],
)
def test_word_forms_of_a_named_language_count(language, concept, text):
    assert present(concept, text, language=language)
    assert missing([concept, "pes"], text, language=language) == ["pes"]
    assert not present(concept, text, strict=True, language=language)


def test_a_language_without_a_stemmer_is_refused_before_a_call():
    with pytest.raises(OptionError, match=r"`language`.*czech.*got 'klingon'"):
        check_word_forms("klingon")
