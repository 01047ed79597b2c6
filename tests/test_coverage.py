"""Coverage by hand: which concepts a reader would find in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_judges.errors import OptionError
from langchain_judges.writing.coverage import (
    check_word_forms,
    distinct,
    fold,
    losses,
    missing,
    present,
)
from tests.cases import for_each

FOUND = [
    # regular and irregular inflections
    ("dunk", "He dunked the ball."),
    ("wrap", "She was wrapping a gift."),
    ("run", "They ran home."),
    ("run", "She runs."),
    ("stand", "He stood there."),
    ("swim", "It has swum far."),
    ("win", "They won."),
    ("leave", "She left."),
    ("bite", "The dog bit him."),
    ("tie", "He is tying it."),
    ("big", "the biggest box"),
    ("good", "a better way"),
    # plurals, in both directions
    ("child", "Two children sang."),
    ("children", "A child sang."),
    ("mouse", "three blind mice"),
    ("leaf", "The leaves fell."),
    ("leave", "He leaves."),
    ("knife", "sharp knives"),
    ("wife", "the wives met"),
    ("tooth", "brush your teeth"),
    ("bus", "two buses"),
    ("story", "old stories"),
    # words that the dictionary lacks
    ("tattoo", "covered in tattoos"),
    ("frisbee", "They threw frisbees."),
    ("sunglass", "She wore sunglasses."),
    ("jean", "blue jeans"),
    ("tricep", "He trained his triceps."),
    ("tattoos", "one tattoo"),
    ("unicycle", "He is unicycling."),
    # irregular plurals that it has as words of their own
    ("person", "Two people waved."),
    ("oxen", "an ox"),
    # capitals, possessives, marks
    ("toddler", "TODDLER"),
    ("Paris", "in paris"),
    ("dog", "the dog's bone"),
    ("dog", "the dogs’ bones"),
    ("vest", "a **vest**, _red_"),
    ("snow", "“Snow!”"),
    ("wall", "well/wall"),
    # several words, hyphens
    ("ice cream", "two ice creams"),
    ("ice cream", "an ice-cream van"),
    ("ice-cream", "He ate ice cream."),
    ("ice cream", "Icecream!"),
    ("e-mail", "an email"),
    ("email", "two e-mails"),
    ("mother-in-law", "both mothers-in-law came"),
    ("pick up", "She picked up a coin."),
    ("fire truck", "Fire\ntrucks came."),
    ("car", "a car-free street"),
    ("well‑known", "a well-known tune"),
    # other alphabets and signs
    ("café", "two cafés"),
    ("café", "CAFE\u0301"),
    ("naïve", "a Naïve plan"),
    ("Straße", "die STRASSE"),
    ("señora", "las señoras"),
    ("дом", "Дом стоит."),
    ("猫", "黒猫が走る"),
    ("C++", "She writes C++."),
    ("AT&T", "at&t called"),
    ("24", "24 hours"),
]
NOT_FOUND = [
    ("car", "a scar on his cheek"),
    ("car", "careful carpets and care"),
    ("art", "a cart of parts"),
    ("ring", "a spring"),
    ("new", "the news"),
    ("organ", "an organization"),
    ("universe", "a university"),
    ("police", "a policy"),
    ("skateboarder", "a skateboard"),
    ("unicycle", "a unicyclist"),
    ("people", "one person"),
    ("wing", "They win."),
    ("hop", "I hope and am hoping."),
    ("saw", "He sees it."),
    ("building", "They build."),
    ("evening", "even so"),
    ("ice cream", "Ice is cream-coloured."),
    ("ice cream", "ice, cream and sugar"),
    ("ice cream", "cream ice"),
    ("mother-in-law", "her mother and the law"),
    ("café", "a caf"),
    ("C++", "She writes C."),
    ("dom", "дом"),
    ("snow", ""),
    ("", "snow"),
    ("  ", "a  b"),
]


@for_each(("concept", "text"), FOUND)
def test_a_concept_is_there_in_any_of_its_forms(concept, text):
    assert present(concept, text)


@for_each(("concept", "text"), NOT_FOUND)
def test_a_concept_is_not_there_in_another_word(concept, text):
    assert not present(concept, text)


STRICT = [
    ("run", "He will Run.", True),
    ("run", "He runs.", False),
    ("dog", "the dog's bone", True),
    ("car", "a scar", False),
    ("ice cream", "an ice\n cream", True),
    ("ice cream", "an ice-cream", False),
    ("ice-cream", "an ice cream", False),
    ("café", "CAFÉ", True),
    ("café", "cafés", False),
    ("C++", "C++11", True),
    ("猫", "黒猫", True),
]


@for_each(("concept", "text", "there"), STRICT)
def test_strictly_only_the_exact_form_counts(concept, text, there):
    assert present(concept, text, strict=True) is there


def test_missing_concepts_keep_their_order_and_spelling():
    assert missing(["Vest", "wall", "snow"], "The walls.") == ["Vest", "snow"]
    assert missing(["wall"], "The walls.", strict=True) == ["wall"]


def test_repeated_concepts_are_one():
    assert distinct(["Ice  cream", "ice cream", "Snow", " snow "]) == ["Ice cream", "Snow"]


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


def test_without_a_text_every_concept_is_missing():
    result = losses(["vest", "snow"], [["vest"], ["snow"]], ["A vest.", "A pit."], None)
    assert [each["lost_in"] for each in result] == ["merge", "solve"]


@given(st.text(max_size=12), st.text(max_size=30), st.text(max_size=30))
def test_what_stands_in_a_text_on_its_own_is_found(concept, before, after):
    text = f"{before} . {concept} . {after}"
    assert present(concept, text, strict=True) is bool(fold(concept).split())
    if present(concept, text, strict=True):
        assert present(concept, text)


FORMS = """
ran/run children/child mice/mouse leaves/leaf went/go wrapped/wrap stood/stand sang/sing
sung/sing caught/catch threw/throw thrown/throw teeth/tooth feet/foot knives/knife
women/woman men/man better/good swam/swim drove/drive driven/drive wore/wear worn/wear
lying/lie dying/die dies/die quickly/quick geese/goose oxen/ox people/person was/be
stories/story happily/happy running/run runner/run wrapping/wrap bought/buy
brought/bring taught/teach thought/think wolves/wolf hit/hit cut/cut cutting/cut
shoes/shoe buses/bus boxes/box heroes/hero photos/photo analyses/analysis lay/lie
left/leave leaves/leave saw/see saw/saw sawing/saw rose/rise felt/feel found/find
ground/grind dove/dive dived/dive crept/creep knelt/kneel lit/light slid/slide
shone/shine strode/stride held/hold sat/sit shook/shake struck/strike blew/blow flew/fly
flown/fly froze/freeze headphones/headphone bartenders/bartender skied/ski skiing/ski
skis/ski dunked/dunk sewn/sew lain/lie wept/weep wove/weave gymnasts/gymnast
hoisted/hoist parties/party marries/marry dice/die halves/half calves/calf scarves/scarf
hooves/hoof loaves/loaf thieves/thief shelves/shelf selves/self lives/life wives/wife
staffs/staff sheep/sheep fish/fish fishes/fish bit/bite hidden/hide hid/hide laid/lay
spun/spin tore/tear torn/tear began/begin begun/begin drank/drink drew/draw drawn/draw
ate/eat eaten/eat fell/fall fallen/fall gave/give grew/grow knew/know rode/ride
rang/ring shot/shoot sank/sink slept/sleep spoke/speak stole/steal swept/sweep
swung/swing took/take told/tell woke/wake won/win wrote/write written/write sold/sell
sent/send spent/spend built/build burnt/burn dealt/deal dug/dig fed/feed fought/fight
fled/flee hung/hang kept/keep led/lead lent/lend lost/lose made/make meant/mean met/meet
paid/pay said/say sought/seek stuck/stick stung/sting swore/swear tied/tie tying/tie
played/play
"""


def test_of_many_forms_only_derivations_are_missed():
    pairs = [pair.split("/") for pair in FORMS.split()]
    assert len(pairs) == 166
    missed = [form for form, concept in pairs if not present(concept, f"So {form} it.")]
    assert missed == ["quickly", "happily", "runner"]


@for_each(
    ("language", "concept", "text"),
    [
        ("czech", "kniha", "Na stole jsou knihy."),
        ("german", "Haus", "Zwei Häuser am See."),
        ("spanish", "flor", "Muchas flores rojas."),
        ("french", "maison", "Des maisons blanches."),
    ],
)
def test_word_forms_of_a_named_language_count(language, concept, text):
    assert present(concept, text, language=language)
    assert missing([concept, "pes"], text, language=language) == ["pes"]
    assert not present(concept, text, strict=True, language=language)


def test_a_language_without_a_stemmer_is_refused_before_a_call():
    with pytest.raises(OptionError, match=r"`language` must be one of .*czech.*got 'klingon'"):
        check_word_forms("klingon")
